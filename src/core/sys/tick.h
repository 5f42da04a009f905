#pragma once

#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <vector>

namespace berth::sys {

/// While it lives, every blocking call of this thread is interrupted (EINTR) at this period. It is
/// periodic because a single signal can come just before the call that it should end. It uses
/// SIGALRM, so it is for processes of our own, and never for a host program.
class Tick {
 public:
  explicit Tick(std::chrono::milliseconds period);
  ~Tick();
  Tick(const Tick&) = delete;
  Tick& operator=(const Tick&) = delete;

  /// The call is also interrupted when this descriptor, a socket or a watch, becomes readable, and
  /// then again every few milliseconds until this Tick ends, because the first interruption may
  /// come just before the call. -1: never. REQUIRES: the descriptor outlives this object.
  void also_by(int descriptor);

 private:
  std::vector<int> descriptors_;
  itimerval timer_before_{};
  struct sigaction before_{};
  sigset_t mask_before_{};
};

}  // namespace berth::sys
