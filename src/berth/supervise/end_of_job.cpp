#include "berth/supervise/end_of_job.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "berth/base/units.h"
#include "berth/command/messages.h"
#include "berth/sys/clock.h"
#include "berth/sys/process_identity.h"

namespace berth::supervise {
namespace {

using std::chrono::milliseconds;

// The time asleep counts, and nobody can set it.
milliseconds end_clock() {
  return std::chrono::duration_cast<milliseconds>(sys::since_boot());
}

}  // namespace

EndOfJob::EndOfJob(leasing::HeldLease& lease, std::chrono::seconds grace) : grace_(grace), clock_(lease) {
  set_timer();
}

void EndOfJob::command_is(pid_t command, bool is_shell) {
  command_ = command;
  is_shell_ = is_shell;
}

std::optional<milliseconds> EndOfJob::left() const {
  const auto of_time = clock_.left();
  const auto due = next_due(end_);
  if (!due) return of_time;
  const auto of_end = std::max(*due - end_clock(), milliseconds(0));
  return of_time && !will_kill() ? std::min(*of_time, of_end) : of_end;
}

// Ctrl-Z stops the job, and us with it: what is due then needs a signal that lets us go on. It
// comes in time also after the machine has slept.
void EndOfJob::set_timer() {
  if (const auto due = left())
    timer_.set(*due);
  else
    timer_.stop();
}

sys::Deadline EndOfJob::next() const {
  const auto due = left();
  return due ? sys::Deadline(std::chrono::steady_clock::now() + *due) : std::nullopt;
}

std::optional<std::int64_t> EndOfJob::go_on(const Processes& job) {
  const TimeDue now_due = will_kill() ? TimeDue::none : clock_.due_now();
  if (now_due == TimeDue::warn) command::print_message(warning_of(clock_));
  if (now_due == TimeDue::over) {
    command::print_message(
        fmt::format("the time of the lease ({}) is over: the job gets SIGTERM now, and SIGKILL in {}",
                    time_for_people(clock_.time().count()), duration_for_people(grace_.count())));
    hang_up_shell();
    take(TimeWish{grace_}, job);
  } else {
    take(TimePasses{}, job);
  }
  if (now_due != TimeDue::warn) return std::nullopt;
  const auto rest = clock_.left();
  return rest ? std::optional(std::chrono::ceil<std::chrono::seconds>(*rest).count()) : std::nullopt;
}

void EndOfJob::yield(const std::string& why, std::chrono::seconds grace, const Processes& job) {
  if (will_kill()) return;
  command::print_message(fmt::format("{}: the job gets SIGTERM now, and SIGKILL in {}", why,
                                     duration_for_people(grace.count())));
  hang_up_shell();
  take(TimeWish{grace}, job);
}

bool EndOfJob::has_asked() const {
  return std::holds_alternative<CommandAsked>(end_) || std::holds_alternative<AllAsked>(end_);
}

bool EndOfJob::will_kill() const {
  const auto* asked = std::get_if<AllAsked>(&end_);
  return asked != nullptr && asked->kill_at;
}

bool EndOfJob::has_only_asked() const {
  const auto* asked = std::get_if<AllAsked>(&end_);
  return asked != nullptr && !asked->kill_at;
}

void EndOfJob::take(const EndEvent& event, const Processes& job) {
  const EndStep step = next_step(end_, event, end_clock());
  end_ = step.next;
  if (step.action == EndAction::ask_command) ask_command(job());
  if (step.action == EndAction::ask_again) asked_.clear();
  if (step.action == EndAction::ask_rest || step.action == EndAction::ask_again) ask(job());
  if (step.action == EndAction::kill) {
    for (const pid_t pid : job()) ::kill(pid, SIGKILL);
  }
  set_timer();
}

// A stopped process gets no signal, and a command that waits for a stopped child does not end.
void EndOfJob::ask_command(const std::vector<pid_t>& job) {
  // Another process cannot have its pid: it is our child.
  if (command_) std::erase_if(asked_, [this](const auto& asked) { return asked.first == *command_; });
  if (command_) ask({*command_});
  hang_up_shell();
  for (const pid_t pid : job) {
    if (const auto stat = sys::process_stat(pid); stat && stat->stopped()) ::kill(pid, SIGCONT);
  }
}

void EndOfJob::ask(const std::vector<pid_t>& job) {
  for (const pid_t pid : job) {
    const auto stat = sys::process_stat(pid);
    if (stat && asked_.emplace(pid, stat->start_ticks).second) sys::ask_to_end(pid);
  }
}

void EndOfJob::hang_up_shell() const {
  if (is_shell_ && command_) ::kill(*command_, SIGHUP);
}

sys::Deadline earlier(sys::Deadline a, sys::Deadline b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace berth::supervise
