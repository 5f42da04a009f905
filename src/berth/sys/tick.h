#pragma once

#include <chrono>
#include <csignal>
#include <ctime>

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

 private:
  timer_t timer_{};
  struct sigaction before_{};
  sigset_t mask_before_{};
};

}  // namespace berth::sys
