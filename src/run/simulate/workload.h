#pragma once

#include <string_view>

#include "berth/base/error.h"
#include "berth/simulate/replay.h"

namespace berth {

/// Reads jobs from lines of fields separated by commas. The first line names the columns, in any
/// order: arrival, devices and duration, and, if they are known, time and user. Times are "90",
/// "30m", "2h"; an arrival may be a date, "2026-11-20 14:02:05". Lines that are empty or begin with
/// # are ignored. Error: `failure`, with the wrong line. `name`: the file's name, for the error.
Result<Workload> workload_from_csv(std::string_view text, std::string_view name, std::size_t devices);

}  // namespace berth
