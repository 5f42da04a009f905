#pragma once

#include <chrono>
#include <ctime>
#include <optional>

namespace berth::sys {

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
