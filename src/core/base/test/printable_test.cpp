#include "berth/base/text.h"

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

TEST_CASE("what nobody sees is shown, so that no two names look alike and no text hides in another") {
  for (const char* unseen :
       {"\u00ad",     "\u034f",     "\u115f",     "\u180e",     "\u200b",     "\u200c",
        "\u200d",     "\u2060",     "\u2061",     "\u2064",     "\u3164",     "\ufe00",
        "\ufeff",     "\uffa0",     "\ufff9",     "\ufffb",     "\ufdd0",     "\ufffe",
        "\uffff",     "\ue000",     "\uf8ff",     "\U0001fffe", "\U000e0001", "\U000e0041",
        "\U000e007f", "\U000e0100", "\U000f0000", "\U0010fffd", "\U0010ffff"}) {
    const std::string text = printable(std::string("al") + unseen + "ice");
    CAPTURE(text);
    CHECK(text.starts_with("al\\x"));
    CHECK(text.ends_with("ice"));
  }
  // Accents that combine, emoji with their selector, and what other languages write with stay.
  for (const char* seen : {"e\u0301", "a\u0308\u0327", "\u2764\ufe0f", "\u2764\ufe0e", "\U0001f44d\U0001f3fd",
                           "李", "नमस्ते", "שלום", "\u00a0", "\ufffd", "\U0001f1e9\U0001f1ea"})
    CHECK(printable(seen) == seen);
  CHECK(printable("\U0001f469\u200d\U0001f4bb") == "\U0001f469\\xe2\\x80\\x8d\U0001f4bb");
}

TEST_CASE("done twice it changes nothing more, so what passes several hands stays readable") {
  CHECK(rc::check("twice is once", [](const std::string& text) {
    RC_ASSERT(printable(printable(text)) == printable(text));
    RC_ASSERT(printable_lines(printable_lines(text)) == printable_lines(text));
  }));
}

TEST_CASE("what stands between quotes ends where it was meant to end") {
  CHECK(in_quotes("sweep 3") == R"("sweep 3")");
  CHECK(in_quotes(R"(the "big" one)") == R"("the \"big\" one")");
  CHECK(in_quotes(R"(a\" free)") == R"("a\\\" free")");
  CHECK(in_quotes("a\\") == R"("a\\")");
  CHECK(in_quotes(R"(C:\data)") == R"("C:\data")");
  CHECK(in_quotes("a\nb") == R"("a\x0ab")");
}

TEST_CASE("a text in quotes for a shell is one word, and stays as it is") {
  CHECK(in_shell_quotes("") == "''");
  CHECK(in_shell_quotes(R"(a $b\n)") == R"('a $b\n')");
  CHECK(in_shell_quotes("it's") == R"('it'\''s')");
}

TEST_CASE("our own sequences stay whole, and what only resembles one does not") {
  constexpr std::array<std::string_view, 2> kOwn{"\n", "\x1b[0m"};
  CHECK(printable("a\n\x1b[0mb\x1b[0", kOwn) == "a\n\x1b[0mb\\x1b[0");
  CHECK(printable_lines("a\nb\r\n") == "a\nb\\x0d\n");
}

}  // namespace
}  // namespace berth::printable_test
