#include "berth/render/text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth::render {
namespace {

constexpr std::int64_t kNow = 1'795'265'321;  // 2026-11-21 12:48:41 UTC

TEST_CASE("columns are counted as a terminal shows them") {
  CHECK(display_width("alice") == 5);
  CHECK(display_width("Jürgen") == 6);
  CHECK(display_width("李明") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("🚀") == 2);
  CHECK(display_width("\xff\xfe") == 2);
}

TEST_CASE("cut text is never wider than asked, and says that it was cut") {
  CHECK(cut("alice", 5) == "alice");
  CHECK(cut("alice", 4) == "ali…");
  CHECK(cut("李明研究", 4) == "李…");
  CHECK(cut("a b c", 3) == "a…");
  CHECK(cut("alice", 0).empty());
  CHECK(rc::check("never wider", [](const std::string& text, unsigned char width) {
    RC_ASSERT(display_width(cut(text, width)) <= width);
  }));
}

TEST_CASE("text that a workload made cannot move the cursor, break a line or turn the writing") {
  CHECK(printable("train.py") == "train.py");
  CHECK(printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\x0a");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");
  CHECK(printable("\u202egnp.exe") == "\\xe2\\x80\\xaegnp.exe");
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

TEST_CASE("a time is told in the reader's zone, with the day where it is another") {
  const Style utc{.now_s = kNow};
  CHECK(clock_time(kNow - 60, utc) == "12:47");
  CHECK(clock_time(kNow - 86400, utc) == "20 Nov 12:48");
  CHECK(clock_time(kNow - 400LL * 86400, utc) == "2025-10-17");
  CHECK(clock_time(0, utc).empty());
  const Style tokyo{.now_s = kNow, .utc_offset_s = 9 * 3600};
  CHECK(clock_time(kNow, tokyo) == "21:48");
  CHECK(clock_time(kNow - 22 * 3600, tokyo) == "20 Nov 23:48");
}

TEST_CASE("how long something lasts is never negative, though a clock was set back") {
  const Style style{.now_s = kNow};
  CHECK(since(kNow - 7200, style) == "since 10:48 (2 h)");
  CHECK(since(kNow + 60, style) == "since 12:49 (0 s)");
  CHECK(since(0, style).empty());
}

TEST_CASE("colours are for those who asked for them") {
  CHECK(toned("free", Tone::good, Style{}) == "free");
  CHECK(toned("free", Tone::good, Style{.colour = true}) == "\x1b[32mfree\x1b[0m");
  CHECK(toned("free", Tone::plain, Style{.colour = true}) == "free");
}

TEST_CASE("one is counted as one") {
  CHECK(counted(1, "GPU") == "1 GPU");
  CHECK(counted(0, "GPU") == "0 GPUs");
  CHECK(counted(3, "process") == "3 processes");
}

}  // namespace
}  // namespace berth::render
