#include "berth/base/error.h"

#include <doctest/doctest.h>

namespace berth::words_test {
namespace {

enum class Colour { red, green, blue };
constexpr auto words_of(Colour) {
  return std::to_array<std::string_view>({"red", "green", "blue"});
}

enum class Forgotten { red, green, blue };
constexpr auto words_of(Forgotten) {
  return std::to_array<std::string_view>({"red", "green"});
}

enum class Removed { red };
constexpr auto words_of(Removed) {
  return std::to_array<std::string_view>({"red", "green"});
}

TEST_CASE("a value without a word, or a word without a value, does not compile") {
  CHECK(has_all_words<Colour>());
  CHECK_FALSE(has_all_words<Forgotten>());
  CHECK_FALSE(has_all_words<Removed>());
}

TEST_CASE("a text that is none of the words leaves the value as it was") {
  Colour colour = Colour::blue;
  CHECK_FALSE(read_value("grey", colour));
  CHECK(colour == Colour::blue);
  CHECK(read_value("green", colour));
  CHECK(to_text(colour) == "green");
}

}  // namespace
}  // namespace berth::words_test
