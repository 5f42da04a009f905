#include "berth/base/text_match.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace berth::text_match_test {
namespace {

constexpr std::array<std::string_view, 4> kWords{"default_wait", "order", "cc", "hosts"};

TEST_CASE("a slip is answered with the word that is meant, and another word with none") {
  CHECK(nearest_word("default_wiat", kWords) == "default_wait");
  CHECK(nearest_word("Order", kWords) == "order");
  CHECK(nearest_word("host", kWords) == "hosts");
  CHECK(nearest_word("ab", kWords).empty());
  CHECK(nearest_word("tolerance", kWords).empty());
}

TEST_CASE("a few words are listed where none is near, and many never") {
  CHECK(instead_of("ordre", kWords) == ", did you mean order?");
  CHECK(instead_of("tolerance", kWords) == "; allowed: default_wait, order, cc, hosts");
  const std::vector<std::string_view> many(9, "order");
  CHECK(instead_of("tolerance", many).empty());
}

}  // namespace
}  // namespace berth::text_match_test
