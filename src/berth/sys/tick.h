#pragma once

#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <vector>

namespace berth::sys {

/// While it lives, every blocking call of this thread is interrupted (EINTR) at this period. Periodic because
/// a single shot can be spent just before the call that it should end. It uses SIGALRM: for processes of our
/// own, never inside a host.
class Tick {
 public:
  explicit Tick(std::chrono::milliseconds period);
  ~Tick();
  Tick(const Tick&) = delete;
  Tick& operator=(const Tick&) = delete;

  /// The call is also interrupted when this becomes readable, which a socket or a watch can tell, and again
  /// every few milliseconds until this Tick ends: the first interruption may come just before the call. -1:
  /// never. REQUIRES: it outlives this.
  void also_by(int descriptor);

 private:
  std::vector<int> descriptors_;
  itimerval timer_before_{};
  struct sigaction before_{};
  sigset_t mask_before_{};
};

}  // namespace berth::sys
