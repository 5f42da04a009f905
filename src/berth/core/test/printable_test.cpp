#include "berth/core/printable.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>

namespace berth::printable_test {
namespace {

TEST_CASE("text that a workload made cannot move the cursor, break a line or turn the writing") {
  CHECK(printable("train.py") == "train.py");
  CHECK(printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\x0a");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");
  CHECK(printable("\u202egnp.exe") == "\\xe2\\x80\\xaegnp.exe");
  CHECK(printable("\u2066a\u2069\u200f") == "\\xe2\\x81\\xa6a\\xe2\\x81\\xa9\\xe2\\x80\\x8f");
  CHECK(printable("\xff李") == "\\xff李");
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(rc::check("no control character is left", [](const std::string& text) {
    for (const char c : printable(text)) {
      RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
      RC_ASSERT(c != 0x7f);
    }
  }));
}

TEST_CASE("done twice it changes nothing more, so what passes several hands stays readable") {
  CHECK(rc::check("twice is once", [](const std::string& text) {
    RC_ASSERT(printable(printable(text)) == printable(text));
    RC_ASSERT(printable_lines(printable_lines(text)) == printable_lines(text));
  }));
}

TEST_CASE("our own sequences stay whole, and what only resembles one does not") {
  constexpr std::array<std::string_view, 2> kOwn{"\n", "\x1b[0m"};
  CHECK(printable("a\n\x1b[0mb\x1b[0", kOwn) == "a\n\x1b[0mb\\x1b[0");
  CHECK(printable_lines("a\nb\r\n") == "a\nb\\x0d\n");
}

}  // namespace
}  // namespace berth::printable_test
