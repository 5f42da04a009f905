#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "berth/history/model/sample.h"
#include "berth/history/model/thinning.h"

namespace berth::history {

/// The steps of a chart.
struct Grid {
  Span span;  ///< whole steps; the last contains the end of the time that was asked for
  std::int64_t step_s = 0;
};

/// At most `points` steps over the last `since_s` seconds. No step is finer than the samples that
/// are kept of the oldest time, nor finer than `least_step_s`. REQUIRES: since_s > 0, points > 0.
Grid grid_for(std::int64_t now_s, std::int64_t since_s, std::int64_t points, std::int64_t least_step_s);

/// One sample for each step; an empty one if nothing is known. The rows are of one device, of any
/// tiers.
std::vector<Sample> resampled(std::span<const SampleRow> rows, const Grid& grid);

}  // namespace berth::history
