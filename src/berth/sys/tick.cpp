#include "berth/sys/tick.h"

#include <unistd.h>

namespace berth::sys {
namespace {

void interrupt_only(int) {}

}  // namespace

Tick::Tick(std::chrono::milliseconds period) {
  struct sigaction action{};
  action.sa_handler = interrupt_only;  // without SA_RESTART: the call shall return
  ::sigaction(SIGALRM, &action, &before_);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, &mask_before_);

  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  ::timer_create(CLOCK_MONOTONIC, &event, &timer_);
  itimerspec times{};
  times.it_interval.tv_sec = period.count() / 1000;
  times.it_interval.tv_nsec = (period.count() % 1000) * 1'000'000;
  times.it_value = times.it_interval;
  ::timer_settime(timer_, 0, &times, nullptr);
}

Tick::~Tick() {
  ::timer_delete(timer_);
  // A tick that is still pending must not meet the action of before, which may be to end the process.
  timespec at_once{};
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_BLOCK, &alarm, nullptr);
  ::sigtimedwait(&alarm, nullptr, &at_once);
  ::sigaction(SIGALRM, &before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace berth::sys
