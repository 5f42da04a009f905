#pragma once

#include <chrono>
#include <cstddef>

// How often a hub asks its agents.
namespace berth::hub {

/// The first time, all agents are asked at once. Then this pause spreads them over the interval, so
/// that work and traffic are even. `index`: of an agent among `count`.
std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count);

/// How long to wait before asking a host again that did not answer `failures` times in a row.
/// `chance`: from 0 up to 1, so that hosts that failed at the same time are not asked at the same
/// time.
std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance);

}  // namespace berth::hub
