#include "berth/base/text.h"

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
  constexpr std::array<std::string_view, 4> kShort{"init", "each", "--host", "--on"};
  for (const std::string_view another : {"info", "watch", "--port", "--rm"})
    CHECK(nearest_word(another, kShort).empty());
  CHECK(nearest_word("intt", kShort) == "init");
  CHECK(nearest_word("tolerance", kWords).empty());
}

TEST_CASE("a few words are listed where none is near, and many never") {
  CHECK(instead_of("ordre", kWords) == ", did you mean order?");
  CHECK(instead_of("tolerance", kWords) == "; allowed: default_wait, order, cc, hosts");
  const std::vector<std::string_view> many(9, "order");
  CHECK(instead_of("tolerance", many).empty());
}

TEST_CASE("one is counted as one") {
  CHECK(counted(1, "GPU") == "1 GPU");
  CHECK(counted(0, "GPU") == "0 GPUs");
  CHECK(counted(3, "process") == "3 processes");
}

TEST_CASE("a text has one part more than separators") {
  using Parts = std::vector<std::string_view>;
  CHECK(parts_at("a,b,c", ',') == Parts{"a", "b", "c"});
  CHECK(parts_at("", ',') == Parts{""});
  CHECK(parts_at(":a:", ':') == Parts{"", "a", ""});
}

}  // namespace
}  // namespace berth::text_match_test
