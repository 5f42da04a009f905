#pragma once

#include <chrono>

#include "berth/base/steady_time.h"

// How long the runner waits before it tries something again, such as a task that has failed.
namespace berth::runner {

/// A job that could not join the queue, or whose task is run again, tries again after so long, then
/// after twice as long.
inline constexpr SteadyTime kFirstPause = std::chrono::milliseconds(200);
inline constexpr std::chrono::seconds kLongestPause{60};

/// Until when something is not tried again.
struct Pause {
  SteadyTime until{};
  SteadyTime length{};
};

/// Begins the next pause, which is twice as long as the last one. A failure at the same moment, or
/// before the pause is over, makes it no longer.
void lengthen(Pause& pause, SteadyTime now, SteadyTime first = kFirstPause,
              SteadyTime longest = kLongestPause);

}  // namespace berth::runner
