#include "berth/supervise/termination_signals.h"

#include <algorithm>
#include <csignal>

#include "berth/sys/process_identity.h"
#include "berth/sys/process_signal.h"

namespace berth::supervise {

using std::chrono::milliseconds;

void TerminationSignals::command_is(pid_t command, bool is_shell) {
  command_ = command;
  is_shell_ = is_shell;
}

// Ctrl-Z stops the job, and us with it: what is due then needs a signal that lets us go on. It
// comes in time also after the machine has slept.
void TerminationSignals::wake_at(const std::optional<milliseconds>& due, milliseconds now) {
  if (due == due_) return;
  due_ = due;
  if (due)
    timer_.set(std::max(*due - now, milliseconds(0)));
  else
    timer_.stop();
}

void TerminationSignals::send(EndAction what, const Processes& job) {
  if (what == EndAction::ask_command) ask_command(job());
  if (what == EndAction::ask_again) asked_.clear();
  if (what == EndAction::ask_rest || what == EndAction::ask_again) ask(job());
  if (what != EndAction::kill) return;
  for (const UniqueProcess& process : job()) sys::send_signal(process, SIGKILL);
}

// A stopped process gets no signal, and a command that waits for a stopped child does not end.
void TerminationSignals::ask_command(const std::vector<UniqueProcess>& job) {
  // Another process cannot have its pid: it is our child.
  if (command_)
    std::erase_if(asked_, [this](const auto& asked) { return std::cmp_equal(asked.pid, *command_); });
  if (command_) ask({sys::unique_process(*command_)});
  hang_up_shell();
  for (const UniqueProcess& process : job) {
    if (const auto stat = sys::process_stat(process); stat && stat->stopped())
      sys::send_signal(process, SIGCONT);
  }
}

void TerminationSignals::ask(const std::vector<UniqueProcess>& job) {
  for (const UniqueProcess& process : job) {
    if (sys::process_stat(process) && asked_.insert(process).second) sys::ask_to_end(process);
  }
}

void TerminationSignals::hang_up_shell() const {
  if (is_shell_ && command_) ::kill(*command_, SIGHUP);
}

}  // namespace berth::supervise
