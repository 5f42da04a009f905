#include "berth/cli/timed_end.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "berth/cli/question.h"
#include "berth/core/units.h"
#include "berth/sys/process_identity.h"

namespace berth::cli {

TimedEnd::TimedEnd(leasing::HeldLease& lease, std::chrono::seconds grace) : clock_(lease, grace) {
  set_timer();
}

// Ctrl-Z stops the job, and us with it: what is due then needs a signal that lets us go on. It comes in time
// also after the machine has slept.
void TimedEnd::set_timer() {
  if (const auto left = clock_.left()) timer_.set(*left);
}

TimedEnd::Moment TimedEnd::next() const {
  const auto left = clock_.left();
  return left ? Moment(std::chrono::steady_clock::now() + *left) : std::nullopt;
}

std::optional<std::int64_t> TimedEnd::go_on(const std::function<std::vector<pid_t>()>& job) {
  const TimeStep step = clock_.step();
  if (step == TimeStep::warn) tell(warning_of(clock_));
  if (step == TimeStep::ask) ask(job());
  if (step == TimeStep::kill) {
    for (const pid_t pid : job()) ::kill(pid, SIGKILL);
  }
  set_timer();
  if (step != TimeStep::warn) return std::nullopt;
  const auto left = clock_.left();
  return left ? std::optional(std::chrono::ceil<std::chrono::seconds>(*left).count()) : std::nullopt;
}

void TimedEnd::end_now(const std::string& why, std::chrono::seconds grace) {
  if (clock_.is_over()) return;
  why_ = why;
  clock_.end_now(grace);
  set_timer();
}

void TimedEnd::ask(const std::vector<pid_t>& job) const {
  const std::string grace = duration_for_people(clock_.grace().count());
  if (why_.empty()) {
    tell(fmt::format("the time of the lease ({}) is over: the job gets SIGTERM now, and SIGKILL in {}",
                     time_for_people(clock_.time().count()), grace));
  } else {
    tell(fmt::format("{}: the job gets SIGTERM now, and SIGKILL in {}", why_, grace));
  }
  if (shell_) ::kill(*shell_, SIGHUP);
  for (const pid_t pid : job) sys::ask_to_end(pid);
}

TimedEnd::Moment earlier(TimedEnd::Moment a, TimedEnd::Moment b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace berth::cli
