#pragma once

#include <chrono>
#include <ctime>
#include <optional>

namespace berth::sys {

/// Sends this process SIGCONT after a time of the boot clock, so that it goes on then even if it is stopped.
/// Makes nothing until it is set. Where the kernel gives no timer it does nothing.
class WakeTimer {
 public:
  WakeTimer() = default;
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;
  ~WakeTimer();

  /// Instead of what was set before, and again every second until the next call: it may have been stopped
  /// between the signal and what the signal is for.
  void set(std::chrono::nanoseconds after);

 private:
  std::optional<timer_t> timer_;
};

}  // namespace berth::sys
