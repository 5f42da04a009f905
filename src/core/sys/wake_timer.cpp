#include "berth/sys/wake_timer.h"

#include <algorithm>
#include <csignal>

namespace berth::sys {

using namespace std::chrono_literals;

WakeTimer::~WakeTimer() {
  if (timer_) ::timer_delete(*timer_);
}

void WakeTimer::set(std::chrono::nanoseconds after) {
  if (!timer_) {
    sigevent wanted{};
    wanted.sigev_notify = SIGEV_SIGNAL;
    wanted.sigev_signo = SIGCONT;
    timer_t made{};
    if (::timer_create(CLOCK_BOOTTIME, &wanted, &made) != 0) return;
    timer_ = made;
  }
  // 0 would mean never.
  after = std::max<std::chrono::nanoseconds>(after, 1ns);
  itimerspec times{};
  times.it_value = {after / 1s, (after % 1s).count()};
  times.it_interval.tv_sec = 1;
  ::timer_settime(*timer_, 0, &times, nullptr);
}

void WakeTimer::stop() {
  const itimerspec never{};
  if (timer_) ::timer_settime(*timer_, 0, &never, nullptr);
}

}  // namespace berth::sys
