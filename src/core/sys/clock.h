#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "berth/base/record.h"

namespace berth::sys {

/// Goes on steadily, even if somebody sets the wall clock. Stands still while the machine is
/// suspended.
std::chrono::nanoseconds monotonic_now();

/// Since the epoch.
std::chrono::nanoseconds wall_now();

/// Since the machine booted, including the time when it was suspended. Start times in /proc are of
/// this clock.
std::chrono::nanoseconds since_boot();
std::int64_t milliseconds_since_boot();
/// What tells this boot of the kernel from all others. "": the kernel does not say.
std::string boot_id();

/// When something is due. nullopt: never.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// For poll(2): the milliseconds until then, rounded up; -1 for never.
int poll_timeout(const Deadline& until);

/// When that clock began, in seconds since the epoch. Changes only if somebody sets the wall clock.
std::int64_t booted_at_s();

/// "14:02" today, "2026-03-01 14:02" on another day; in the time zone of the user.
std::string wall_text(std::int64_t seconds_since_epoch);

/// How far the clock of the user is ahead of UTC at that moment, in seconds.
std::int32_t utc_offset_s(std::int64_t seconds_since_epoch);

/// The present minute of the week in the time zone of the machine, whatever the user's TZ says.
WeekMinute machine_minute();

/// Sends this process SIGCONT after a time of the boot clock, so that it goes on then even if it is
/// stopped. Makes no timer until it is set. If the kernel gives no timer, it does nothing.
class WakeTimer {
 public:
  WakeTimer() = default;
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;
  ~WakeTimer();

  /// Replaces the time that was set before. The signal comes again every second until the next
  /// call, because this process may be stopped again before it has done what is due.
  void set(std::chrono::nanoseconds after);
  void stop();

 private:
  std::optional<timer_t> timer_;
};

}  // namespace berth::sys
