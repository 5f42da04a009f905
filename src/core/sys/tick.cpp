#include "berth/sys/tick.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

namespace berth::sys {
namespace {

constexpr long kAgainUs = 2000;

// Of the one Tick that there is. Read by the handler.
std::atomic<bool> has_become_readable = false;

// Without SA_RESTART the call returns. All else is for a call that had not begun.
void interrupt(int, siginfo_t* signal, void*) {
  if (signal->si_code == POLL_IN) has_become_readable = true;
  if (!has_become_readable) return;
  itimerval again{};
  again.it_value.tv_usec = again.it_interval.tv_usec = kAgainUs;
  ::setitimer(ITIMER_REAL, &again, nullptr);  // on Linux a call of the kernel and nothing else
}

}  // namespace

Tick::Tick(std::chrono::milliseconds period) {
  struct sigaction action{};
  action.sa_sigaction = interrupt;
  action.sa_flags = SA_SIGINFO;
  has_become_readable = false;
  ::sigaction(SIGALRM, &action, &before_);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, &mask_before_);

  // The one timer that every process has. Another has to be made, which fails where the user's
  // limit of pending signals is reached, and a sleep without its timer would have no end.
  itimerval times{};
  times.it_interval.tv_sec = period.count() / 1000;
  times.it_interval.tv_usec = (period.count() % 1000) * 1000;
  times.it_value = times.it_interval;
  ::setitimer(ITIMER_REAL, &times, &timer_before_);
}

void Tick::also_by(int descriptor) {
  if (descriptor < 0) return;
  descriptors_.push_back(descriptor);
  ::fcntl(descriptor, F_SETOWN, ::getpid());
  ::fcntl(descriptor, F_SETSIG, SIGALRM);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_ASYNC);
}

Tick::~Tick() {
  for (const int descriptor : descriptors_)
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_ASYNC);
  has_become_readable = false;
  ::setitimer(ITIMER_REAL, &timer_before_, nullptr);
  // A tick that is still pending must not meet the action of before, which may be to end the
  // process.
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
