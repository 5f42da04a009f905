#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/process_end.h"
#include "berth/base/unique_process.h"
#include "berth/sys/clock.h"
#include "berth/sys/resource_limits.h"

namespace berth::sys {

/// A command as the user wrote it, to be run in place of this process: same terminal, same process
/// group, same standard streams, unless it gets a terminal of its own.
struct JobCommand {
  std::vector<std::string> words;  ///< never empty; the first is looked for on PATH
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables in addition to ours
  std::vector<std::string> unset;                                ///< variables to leave out of ours
  std::vector<int>
      inherited;  ///< descriptors of which it gets copies, at numbers that no program uses by itself
  CommandLimits limits{};
  /// A terminal that becomes the command's own: its three streams, in a session that it leads. -1:
  /// it has those of this process.
  int terminal = -1;
};

/// A command that could not be run. Status 127: there is no such command; 126: it cannot be
/// executed. The message says why.
struct NotStarted {
  int exit_status = 126;
  std::string message;
};

/// Looks whether there is such a command, without running it. nullopt: there is.
std::optional<NotStarted> cannot_start(const std::vector<std::string>& words);

/// Looks whether a command could inherit this many descriptors, under the limit of open files.
/// nullopt: it could.
std::optional<NotStarted> cannot_inherit(std::size_t descriptors);

/// Replaces this process by the command. Returns only if that fails.
NotStarted exec_job(const JobCommand& command);

/// The sender of a signal, as the kernel says.
struct Sender {
  uid_t uid = 0;
  pid_t pid = 0;

  bool operator==(const Sender&) const = default;
};

/// Somebody has asked this process by SIGTERM to end its job.
struct EndCall {
  Sender sender;
  bool is_cancel = false;  ///< by `ask_to_cancel`
  bool is_of_job = false;  ///< by a process of the job, perhaps to its whole process group
};

/// Holds SIGTERM back from this process. One that came meanwhile arrives at the end of this object.
class HeldTermination {
 public:
  HeldTermination();
  ~HeldTermination();
  HeldTermination(const HeldTermination&) = delete;
  HeldTermination& operator=(const HeldTermination&) = delete;

  const sigset_t& mask_before() const { return mask_before_; }

 private:
  sigset_t mask_before_{};
};

/// A running command whose parent this process stays. While it lives, this process passes its own
/// signals on to the command, except SIGTERM and those that the terminal has sent to both. A signal
/// that a process of the job sends to its process group reaches this process too, and is not passed
/// on. If a sender cannot be found any more, its signal counts as one from outside, because the
/// program `kill` ends as soon as it has sent it. A
/// terminal that closes tells only the leader of its session: if that is this process, the command
/// gets SIGHUP, and what is left of its group gets it when the command has ended, as if the command
/// were the leader. If the terminal stops the command, this process stops too, if there is a shell
/// that can continue it.
class JobProcess {
 public:
  /// The command does not inherit what `held` holds back: a SIGTERM that came meanwhile is told by
  /// take_call().
  /// `others`: children of this process that are no part of the job. Neither is what they start.
  static std::expected<JobProcess, NotStarted> start(const JobCommand& command, const HeldTermination& held,
                                                     std::set<UniqueProcess> others = {});

  JobProcess(JobProcess&& other) noexcept;
  JobProcess& operator=(JobProcess&&) = delete;
  ~JobProcess();

  pid_t pid() const { return pid_; }
  /// Waits until the command itself ends. Descendants that it leaves behind become our children.
  /// nullopt: the command still runs, and one of these has happened: it is `until`, another child
  /// has ended, a WakeTimer or a Bell has rung, or somebody has sent SIGTERM.
  std::optional<ProcessEnd> wait(Deadline until);

  /// After `wait`: waits until a descendant ends or a signal comes. nullopt: it is `until`.
  enum class Event {
    child_ended,
    asked_to_end,    ///< SIGTERM: the whole job is to end; take_call() says by whom
    asked_to_leave,  ///< by Ctrl-C
    hung_up,         ///< the terminal has closed
    rung,            ///< a Bell
  };
  std::optional<Event> wait_for_leftovers(std::chrono::steady_clock::time_point until);
  /// Who has asked since the last call of this that the job end. nullopt: nobody.
  std::optional<EndCall> take_call();

  struct Children {
    bool have_ended = false;  ///< one or more, since they were collected last
    bool are_left = false;
  };
  /// Collects those of our children that have ended.
  static Children collect_children();

 private:
  JobProcess(pid_t pid, const sigset_t& mask_before, std::set<UniqueProcess> others)
      : pid_(pid), others_(std::move(others)), mask_before_(mask_before) {}
  std::optional<ProcessEnd> collect();
  bool is_of_job(pid_t pid) const;
  bool is_to_group(const siginfo_t& info) const;
  void note_call(const siginfo_t& info);

  pid_t pid_;
  std::set<UniqueProcess> others_;
  sigset_t mask_before_;
  bool hung_up_ = false;  ///< the terminal whose session this process leads has closed
  std::optional<EndCall> call_{};
};

/// Ends this process as the command ended: same exit status, or killed by the same signal (without
/// a second core file).
[[noreturn]] void end_like(const ProcessEnd& ending);

}  // namespace berth::sys
