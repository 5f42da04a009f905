#pragma once

#include <string_view>

#include "berth/core/error.h"
#include "berth/core/replay.h"

namespace berth {

/// Jobs written down as lines of fields with commas between. The first line names the columns, in any order:
/// arrival, devices and duration, and where they are known time and user. Times are "90", "30m", "2h"; an
/// arrival may be a date, "2026-11-20 14:02:05". Lines that are empty or begin with # are left out. Error:
/// `failure`, with the line at fault, in `name`.
Result<Workload> workload_from_csv(std::string_view text, std::string_view name, std::size_t devices);

}  // namespace berth
