#include "berth/history/model/sample.h"

#include <doctest/doctest.h>

namespace berth::history::sample_test {
namespace {

constexpr Reading<int> kNone = std::nullopt;

Sample merged(const std::vector<Sample>& samples) {
  SampleMerger merger;
  for (const Sample& sample : samples) merger.add(sample);
  return merger.merged();
}

TEST_CASE("of several samples use and power are the mean, memory and temperature the most") {
  CHECK(merged({{10, 100, 30, 50, 0}, {21, 300, 29, 70, 100}}) == Sample{16, 300, 30, 60, 50});
  CHECK(merged({{0, 0, -5, 0, 0}}) == Sample{0, 0, -5, 0, 0});
}

TEST_CASE("what a sample lacks is that of the others, and never zero") {
  CHECK(merged({{10, kNone, 30, kNone, 100}, {kNone, 7, kNone, kNone, 0}}) == Sample{10, 7, 30, kNone, 50});
  CHECK(merged({}) == Sample{});
}

TEST_CASE("a step begins at a multiple of its length, also before 1970") {
  CHECK(step_of(1234, 10) == 1230);
  CHECK(step_of(1230, 10) == 1230);
  CHECK(step_of(-1, 10) == -10);
}

TEST_CASE("rows are merged by step and device") {
  const std::vector<SampleRow> rows{
      {0, "b", {10, kNone, kNone, kNone, 0}},
      {0, "a", {20, kNone, kNone, kNone, 0}},
      {290, "a", {40, kNone, kNone, kNone, 100}},
      {300, "a", {60, kNone, kNone, kNone, 100}},
  };
  CHECK(merged_rows(rows, 300) == std::vector<SampleRow>{{0, "a", {30, kNone, kNone, kNone, 50}},
                                                         {0, "b", {10, kNone, kNone, kNone, 0}},
                                                         {300, "a", {60, kNone, kNone, kNone, 100}}});
}

TEST_CASE("a chart has at most as many steps as are asked for, and none finer than what is kept") {
  struct Row {
    std::int64_t since_s, points, least_step_s, step_s;
  };
  for (const Row& row :
       {Row{60, 300, 1, 10}, Row{3600, 300, 1, 20}, Row{3600, 300, 60, 60}, Row{kDay, 300, 1, 300},
        Row{kDay, 2000, 1, 60}, Row{4 * kDay, 2000, 1, 300}, Row{7 * kDay, 300, 1, 3600},
        Row{56 * kDay, 300, 1, 21600}, Row{400 * kDay, 300, 1, 172800}, Row{400 * kDay, 2, 1, 215 * kDay}}) {
    const std::int64_t now_s = 1'800'000'123;
    const Grid grid = grid_for(now_s, row.since_s, row.points, row.least_step_s);
    CHECK(grid.step_s == row.step_s);
    CHECK((grid.span.to_s - grid.span.from_s) / grid.step_s <= row.points);
    CHECK(grid.span.from_s <= now_s - row.since_s);
    CHECK(grid.span.to_s > now_s);
  }
}

TEST_CASE("a step of a chart of which nothing is known is empty") {
  const std::vector<SampleRow> rows{{100, "a", {10, 1, 1, 1, 1}},
                                    {110, "a", {30, 1, 1, 1, 1}},
                                    {140, "a", {50, 1, 1, 1, 1}},
                                    {160, "a", {70, 1, 1, 1, 1}}};
  const auto samples = resampled(rows, {{100, 160}, 20});
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].utilization_percent == 20);
  CHECK(samples[1] == Sample{});
  CHECK(samples[2].utilization_percent == 50);
}

}  // namespace
}  // namespace berth::history::sample_test
