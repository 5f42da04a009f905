#include "berth/view/text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth::view::text_test {
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

TEST_CASE("a terminal that has ASCII alone is told what was cut, and shows no other character") {
  CHECK(in_ascii("ali… 2 GPUs") == "ali~ 2 GPUs");
  CHECK(in_ascii("é李\xff") == "???");
}

TEST_CASE("what is written for people keeps our own colours and lines, and no other control character") {
  const Style coloured{.colour = true};
  const std::string own = toned("free", Tone::good, coloured) + "\n" + std::string(kClearLine) + "a\tb\n";
  CHECK(for_terminal(own) == own);
  CHECK(for_terminal("\x1b]0;owned\a\r\x1b[2J\n") == "\\x1b]0;owned\\x07\\x0d\\x1b[2J\n");
  for (const Tone tone :
       {Tone::plain, Tone::good, Tone::waiting, Tone::foreign, Tone::bad, Tone::faint, Tone::strong})
    CHECK(for_terminal(toned("x", tone, coloured)) == toned("x", tone, coloured));
}

TEST_CASE("a time is told in the reader's zone, with the day where it is another") {
  const Style utc{.now_s = kNow};
  CHECK(clock_time(kNow - 60, utc) == "12:47");
  CHECK(clock_time(kNow - 86400, utc) == "20 Nov 12:48");
  CHECK(clock_time(kNow - 400LL * 86400, utc) == "2025-10-17");
  CHECK(clock_time(0, utc).empty());
  const Style tokyo{.now_s = kNow, .utc_offset_s = [](std::int64_t) -> std::int32_t { return 9 * 3600; }};
  CHECK(clock_time(kNow, tokyo) == "21:48");
  CHECK(clock_time(kNow - 22 * 3600, tokyo) == "20 Nov 23:48");
}

TEST_CASE("a time on the other side of a change of daylight saving has the offset of its own moment") {
  // Of Berlin: 2026-10-25 01:00 UTC.
  constexpr std::int64_t kChange = 1'792'890'000;
  const UtcOffset berlin = [](std::int64_t at_s) -> std::int32_t { return at_s < kChange ? 7200 : 3600; };
  const Style before{.now_s = kChange - 3600, .utc_offset_s = berlin};
  CHECK(clock_time(kChange - 7200, before) == "01:00");
  CHECK(clock_time(kChange + 7200, before) == "04:00");
  const Style after{.now_s = kChange + 36'000, .utc_offset_s = berlin};
  CHECK(clock_time(kChange - 7200, after) == "01:00");
  CHECK(clock_time(kChange - 5 * 3600, after) == "24 Oct 22:00");
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

}  // namespace
}  // namespace berth::view::text_test
