#include "berth/timeline/picture.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"

namespace berth::timeline::picture_test {
namespace {

constexpr std::int64_t kNoon = 1'795'262'400;
constexpr std::int64_t kHour = 3600;
constexpr std::uint32_t kAda = 1001;
const Style kStyle{.width = 80, .now_s = kNoon};

TimelineBar bar(BarKind kind, BarEnd end, std::int64_t from_s, std::int64_t until_s, const std::string& user,
                std::uint32_t uid = 0) {
  return {.kind = kind,
          .end = end,
          .from_s = kNoon + from_s,
          .until_s = kNoon + until_s,
          .user = user,
          .what = "needs a reset",
          .id = TicketId{7},
          .uid = uid};
}

/// Two hours each way: bob's lease to its limit, ada's idle one without, a free GPU, an outsider, a
/// lost card.
Timeline of_all_kinds() {
  Timeline line{.from_s = kNoon - 2 * kHour, .now_s = kNoon, .to_s = kNoon + 2 * kHour, .step_s = 600};
  for (unsigned i = 0; i < 5; ++i) {
    line.rows.push_back({.uuid = test::uuid_of(i), .label = std::to_string(i)});
    line.rows[i].loads.assign(13, 0);
  }
  line.rows[0].bars = {bar(BarKind::lease, BarEnd::limit, -kHour, kHour, "bob", 1002),
                       bar(BarKind::reservation, BarEnd::open, kHour, 2 * kHour, "eve")};
  line.rows[0].loads.assign(13, 100);
  line.rows[1].bars = {bar(BarKind::lease, BarEnd::open, -kHour, 2 * kHour, "ada", kAda)};
  line.rows[1].idle = true;
  line.rows[1].idle_since_s = kNoon - 2400;
  line.rows[2].free = true;
  line.rows[3].bars = {bar(BarKind::outsider, BarEnd::open, -kHour, 2 * kHour, "mal")};
  line.rows[4].bars = {bar(BarKind::unusable, BarEnd::open, 0, 2 * kHour, "")};
  line.next = NextEnd{test::uuid_of(0), "0", kNoon + kHour};
  line.queue = {
      {.id = TicketId{8}, .user = "eve", .uid = 1003, .count = 2, .what{}, .starts_at_s = kNoon + kHour},
      {.id = TicketId{9}, .user = "ada", .uid = kAda, .position = 2, .what{}}};
  return line;
}

std::string line_text(const PictureRow& line) {
  std::string text;
  for (const view::Cell& part : line.parts) text += part.text;
  return text;
}

std::size_t count_of(std::string_view text, std::string_view shape) {
  std::size_t count = 0;
  for (std::size_t at = text.find(shape); at != std::string_view::npos; at = text.find(shape, at + 1))
    ++count;
  return count;
}

TEST_CASE("the first questions are answered in a sentence each") {
  CHECK(answers(of_all_kinds(), kAda, kStyle) ==
        std::vector<std::string>{
            "1 of 5 GPUs is free: GPU 2. Next: GPU 0, about 13:00; requests that wait come first.",
            "You have GPU 1; you are second, at a time that nobody knows yet.",
            "Leased and idle: GPU 1 (ada, 40 min).",
            "2 wait: eve for 2 GPUs about 13:00, you for 1 GPU (no time known)."});
  Timeline none{.from_s = kNoon - 1, .now_s = kNoon, .to_s = kNoon + 1};
  none.rows.push_back({.uuid = "a", .label = "0", .free = true});
  CHECK(answers(none, kAda, kStyle) == std::vector<std::string>{"1 of 1 GPU is free: GPU 0. Nobody has one.",
                                                                "You have no GPU, and do not wait for one.",
                                                                "No leased GPU is idle.", "Nobody waits."});
  none.rows[0].free = false;
  none.rows[0].bars = {bar(BarKind::lease, BarEnd::open, -1, 1, "bob")};
  CHECK(answers(none, {}, kStyle).front() ==
        "None of 1 GPU is free. Next: not known, since no lease has a time limit.");
}

TEST_CASE("of one's own GPUs those with the same end are named together") {
  Timeline line{.from_s = kNoon - 1, .now_s = kNoon, .to_s = kNoon + 2 * kHour};
  const auto add = [&](const std::string& label, BarEnd end, std::int64_t until_s) {
    TimelineRow& row = line.rows.emplace_back();
    row.uuid = label;
    row.label = label;
    row.bars = {bar(BarKind::lease, end, -1, until_s, "ada")};
    row.bars[0].uid = kAda;
    row.bars[0].id = TicketId{};
  };
  add("0", BarEnd::limit, kHour);
  add("1", BarEnd::open, 2 * kHour);
  add("2", BarEnd::limit, kHour);
  add("3", BarEnd::limit, kHour);
  CHECK(answers(line, kAda, kStyle)[1] == "You have GPU 0,2,3 until 13:00, GPU 1.");
}

TEST_CASE("what is expected is said as that, and its shape is not that of a limit") {
  Timeline line = of_all_kinds();
  line.rows[1].bars[0].expected_s = kNoon + kHour;
  line.next = NextEnd{test::uuid_of(1), "1", kNoon + kHour, true};
  const auto told = answers(line, kAda, kStyle);
  CHECK(
      told[0] ==
      "1 of 5 GPUs is free: GPU 2. Next: GPU 1, about 13:00, going by earlier runs; requests that wait come "
      "first.");
  CHECK(told[1].starts_with("You have GPU 1 until about 13:00;"));
  for (const bool ascii : {false, true}) {
    const std::string row = line_text(picture(line, kAda, kStyle, ascii)[2]);
    CHECK(count_of(row, ascii ? "~" : "╍") >= 8);
    CHECK(count_of(row, ascii ? "-" : "┄") >= 8);
    CHECK(row.ends_with("ada until about 13:00, id…"));
  }
}

TEST_CASE("each state has a shape of its own, and each line fits") {
  for (const bool ascii : {false, true}) {
    const auto lines = picture(of_all_kinds(), kAda, kStyle, ascii);
    REQUIRE(lines.size() == 8);
    for (const PictureRow& line : lines) CHECK(view::display_width(line_text(line)) <= 80);
    CHECK(line_text(lines[0]).find("12:00") != std::string::npos);
    const std::string leased = line_text(lines[1]);
    CHECK(count_of(leased, ascii ? "#" : "█") == count_of(leased, ascii ? "=" : "━"));
    CHECK(count_of(leased, ascii ? "/" : "╱") >= 8);
    CHECK(leased.ends_with("bob until 13:00"));
    CHECK(line_text(lines[2]).find(ascii ? "____" : "▁▁▁▁") != std::string::npos);
    CHECK(line_text(lines[2]).find(ascii ? "----" : "┄┄┄┄") != std::string::npos);
    CHECK(lines[2].mine);
    CHECK(line_text(lines[2]).ends_with("ada, idle"));
    CHECK(line_text(lines[3]).ends_with("free"));
    CHECK(count_of(line_text(lines[4]), "x") >= 20);
    CHECK(line_text(lines[5]).find("!!!! needs a reset") != std::string::npos);
    CHECK(line_text(lines[6]).starts_with(" 1. "));
    CHECK(line_text(lines[6]).ends_with("eve 2 GPUs about 13:00"));
    CHECK(line_text(lines[7]).ends_with("ada 1 GPU"));
    if (!ascii) continue;
    for (const PictureRow& line : lines)
      CHECK(std::ranges::all_of(line_text(line), [](char c) { return c >= ' ' && c <= '~'; }));
  }
}

TEST_CASE("any width has a picture, and a pipe has that of 80 columns") {
  for (const unsigned width : {1U, 20U, 40U, 59U, 60U, 80U, 100U, 200U, 400U}) {
    Style style = kStyle;
    style.width = width;
    for (const PictureRow& line : picture(of_all_kinds(), kAda, style, false))
      CHECK(view::display_width(line_text(line)) <= std::max(width, 20U));
  }
  Style pipe = kStyle;
  pipe.width = view::kUnlimited;
  const std::string text = text_of(of_all_kinds(), kAda, pipe, false);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find(" \n") == std::string::npos);
  CHECK(std::ranges::count(text, '\n') <= 24);
}

TEST_CASE("a document is read as it was written, and what is none is refused") {
  Timeline written = of_all_kinds();
  written.rows[1].loads[3] = std::nullopt;
  written.rows[1].bars[0].expected_s = kNoon + kHour;
  written.rows[1].bars[0].peak_mib = 4711;
  written.rows[1].bars[0].use_percent = 87;
  written.rows[1].bars[0].energy_mj = 5'000'000'000;
  written.rows[1].bars[0].clean = false;
  written.next->expected = true;
  // Users have numbers on one machine only.
  for (TimelineRow& row : written.rows)
    for (TimelineBar& each : row.bars) each.uid = 0;
  for (TimelineWaiter& each : written.queue) each.uid = 0;
  const auto read = from_json(to_json(written, view::Layout::line));
  REQUIRE(read.has_value());
  CHECK(*read == written);
  // As the version before writes it: nothing is expected.
  std::string before = to_json(written, view::Layout::line);
  for (const std::string& key :
       {fmt::format(",\"expected_s\":{}", kNoon + kHour), std::string(R"(,"expected":true)"),
        std::string(R"(,"peak_mib":4711)"), std::string(R"(,"use_percent":87)"),
        std::string(R"(,"energy_mj":5000000000)"), std::string(R"(,"clean":false)")}) {
    REQUIRE(before.contains(key));
    before.erase(before.find(key), key.size());
  }
  written.rows[1].bars[0].expected_s.reset();
  written.rows[1].bars[0].peak_mib.reset();
  written.rows[1].bars[0].use_percent.reset();
  written.rows[1].bars[0].energy_mj.reset();
  written.rows[1].bars[0].clean.reset();
  written.next->expected = false;
  CHECK(from_json(before) == written);
  CHECK_FALSE(from_json("[").has_value());
  CHECK_FALSE(from_json(R"({"kind":"berth-timeline","version":2})").has_value());
  CHECK_FALSE(
      from_json(R"({"kind":"berth-timeline","version":1,"from_s":5,"now_s":5,"to_s":9})").has_value());
}

}  // namespace
}  // namespace berth::timeline::picture_test
