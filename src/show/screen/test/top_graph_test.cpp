#include "berth/screen/model/top_graph.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::view::top_graph_test {
namespace {

constexpr std::int64_t kNoon = 1'795'262'400;
const Style kStyle{.width = 80, .now_s = kNoon};
const ScreenSize kSize{80, 24};

/// Two GPUs that were watched for five minutes: one at 100 %, one at 50 %.
TopSight watched() {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(2);
  report->facts.snapshot.devices[0].utilization_percent = 100;
  report->facts.snapshot.devices[1].utilization_percent = 50;
  TopSight sight;
  sight.hosts = {std::make_shared<Host>(Host{.name = "gpu1", .seen_s = kNoon, .report = std::move(report)})};
  for (std::int64_t at = -300; at < 0; at += 2) remember(sight.trends, sight.hosts, kNoon + at, 2);
  return sight;
}

TopView on_gpu(const std::string& label) {
  TopView view{.graph_span_s = 600};
  view.at = {TopSection::devices, "gpu1", label};
  return view;
}

std::vector<std::string> drawn(const TopSight& sight, const TopView& view, const ScreenSize& size = kSize) {
  std::vector<std::string> lines;
  for (const Row& row : graph_rows(sight, view, size, kStyle)) {
    std::string& line = lines.emplace_back();
    for (const Cell& part : row) line += part.text;
    CHECK(display_width(line) <= size.columns);
  }
  return lines;
}

std::size_t count_in(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("the graphs are of the GPU under the cursor, else the mean of all") {
  const TopSight sight = watched();
  const auto one = drawn(sight, on_gpu("1"));
  REQUIRE(one.size() == 6);
  CHECK(one[0].starts_with("Load of GPU 1: 50 %"));
  CHECK(one[0].find("Memory of GPU 1: ") != std::string::npos);
  CHECK(one[5].starts_with("     10 min ago"));
  CHECK(one[5].ends_with("now"));
  CHECK(drawn(sight, {})[0].starts_with("Load of 2 GPUs: mean 75 %"));
  TopView of_hours;
  of_hours.at = {TopSection::hours, "gpu1", "0"};
  CHECK(drawn(sight, of_hours)[0].starts_with("Load of GPU 0: 100 %"));
  of_hours.at.name = "#2";
  CHECK(drawn(sight, of_hours)[0].starts_with("Load of 2 GPUs"));
}

TEST_CASE("a bar is as high as the load, and where nobody looked there is none") {
  const TopSight sight = watched();
  const std::size_t half = (39 - 5) / 2;
  const auto full = drawn(sight, on_gpu("0"));
  CHECK(full[1].starts_with("100% "));
  CHECK(full[4].starts_with("  0% "));
  for (std::size_t row = 1; row <= 4; ++row) {
    CHECK(count_in(full[row], "█") == half);
    CHECK(full[row].substr(5, 10) == std::string(10, ' '));
  }
  const auto fifty = drawn(sight, on_gpu("1"));
  CHECK(count_in(fifty[2], "█") == 0);
  CHECK(count_in(fifty[3], "█") == half);
  ScreenSize plain = kSize;
  plain.ascii = true;
  for (const std::string& line : drawn(sight, on_gpu("0"), plain))
    for (const char c : line) CHECK((c >= ' ' && c <= '~'));
}

TEST_CASE("what the history has fills what top has not seen, and only that") {
  TopSight sight = watched();
  auto past = std::make_shared<RecordedLeases>(
      RecordedLeases{.from_s = kNoon - 3600, .to_s = kNoon, .devices = {test::uuid_of(1)}, .step_s = 300});
  past->loads.assign(1, std::vector<Reading<int>>(12, 0));
  past->memories.assign(1, std::vector<Reading<int>>(12, 0));
  sight.past = past;
  const auto lines = drawn(sight, on_gpu("1"));
  CHECK(count_in(lines[4], "▁") >= 17);  // none at all is a line, and differs from not known
  CHECK(count_in(lines[3], "█") == 17);
  CHECK(count_in(drawn(sight, on_gpu("0"))[4], "▁") < 30);
}

TEST_CASE("a key goes through the spans and ends with none") {
  TopView view;
  for (const std::string_view span : {"2 min", "10 min", "1 h", "6 h"}) {
    CHECK(drawn(watched(), view).back().starts_with("     " + std::string(span) + " ago"));
    view.graph_span_s = next_graph_span(graph_span_of(view));
  }
  CHECK(drawn(watched(), view).empty());
  CHECK(next_graph_span(graph_span_of(view)) == graph_span_of(TopView()));
}

TEST_CASE("no graph is drawn where there is no room, or nothing was seen") {
  const TopSight sight = watched();
  CHECK(drawn(sight, {}, {80, 19}).empty());
  CHECK(drawn(sight, {}, {29, 24}).empty());
  CHECK(drawn(sight, {}, {40, 24})[0].find("Memory") == std::string::npos);
  CHECK(drawn(sight, {}, {80, 40}).size() == 10);
  CHECK(drawn({}, {}).empty());
}

}  // namespace
}  // namespace berth::view::top_graph_test
