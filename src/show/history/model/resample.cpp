#include "berth/history/model/resample.h"

#include <algorithm>
#include <array>

namespace berth::history {
namespace {

// Each a multiple of the tiers' steps that it may stand for, and kind to the eye on an axis.
constexpr std::array<std::int64_t, 15> kSteps{10,   20,   30,   60,    120,   300,   600,  900,
                                              1800, 3600, 7200, 14400, 21600, 43200, 86400};

}  // namespace

Grid grid_for(std::int64_t now_s, std::int64_t since_s, std::int64_t points, std::int64_t least_step_s) {
  std::int64_t finest = least_step_s;
  for (std::size_t tier = 0; tier + 1 < kTiers.size(); ++tier) {
    if (since_s > kTiers[tier].kept_s) finest = std::max(finest, kTiers[tier + 1].step_s);
  }
  const auto steps = [&](std::int64_t step_s) {
    return (step_of(now_s, step_s) - step_of(now_s - since_s, step_s)) / step_s + 1;
  };
  const auto fits = [&](std::int64_t step_s) { return step_s >= finest && steps(step_s) <= points; };
  const auto found = std::ranges::find_if(kSteps, fits);
  std::int64_t step_s = found == kSteps.end() ? kSteps.back() : *found;
  while (steps(step_s) > std::max<std::int64_t>(2, points)) step_s += kSteps.back();
  return {{step_of(now_s - since_s, step_s), step_of(now_s, step_s) + step_s}, step_s};
}

std::vector<Sample> resampled(std::span<const SampleRow> rows, const Grid& grid) {
  const auto count = static_cast<std::size_t>((grid.span.to_s - grid.span.from_s) / grid.step_s);
  std::vector<SampleMerger> mergers(count);
  for (const SampleRow& row : rows) {
    if (row.time_s < grid.span.from_s || row.time_s >= grid.span.to_s) continue;
    mergers[static_cast<std::size_t>((row.time_s - grid.span.from_s) / grid.step_s)].add(row.sample);
  }
  std::vector<Sample> samples;
  samples.reserve(count);
  for (const SampleMerger& merger : mergers) samples.push_back(merger.merged());
  return samples;
}

}  // namespace berth::history
