#pragma once

#include <chrono>

namespace berth {

/// Of std::chrono::steady_clock, which nobody can set: since it began, or between two such times.
using SteadyTime = std::chrono::nanoseconds;

}  // namespace berth
