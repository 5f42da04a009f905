#pragma once

#include <cstdint>
#include <vector>

#include "berth/screen/model/top.h"

namespace berth::view {

/// Load and memory over time, of the device that the cursor is on or of all. Empty: there is
/// nothing to draw, too little room, or the reader wants none.
std::vector<Row> graph_rows(const TopSight& sight, const TopView& view, const ScreenSize& size,
                            const Style& style);

/// The span that the reader has chosen, else the first.
std::int64_t graph_span_of(const TopView& view);

/// The span after this one; 0 (none) after the last.
std::int64_t next_graph_span(std::int64_t span_s);

}  // namespace berth::view
