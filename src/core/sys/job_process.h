#pragma once

#include <sys/types.h>
#include <termios.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::sys {

/// "exit status 3", "signal 11 (Segmentation fault)".
std::string to_text(const ProcessEnd& ending);

/// Closes all descriptors but the standard ones.
void close_above_standard();

struct Command {
  std::string program;                   ///< a path if it has a slash; otherwise looked for on PATH
  std::vector<std::string> arguments{};  ///< without the program's own name
  int input = -1;                        ///< descriptor for its standard input; -1: /dev/null
  int output = -1;
  int error = -1;
  bool controls_terminal = false;  ///< its input is a terminal, which becomes that of its session
  /// "NAME=VALUE": its whole environment; nullopt: that of this process.
  std::optional<std::vector<std::string>> environment{};
};

/// A process that serves this one. It gets the three descriptors of its command and no others, no
/// blocked signal, and a session of its own, so that the terminal's Ctrl-C and Ctrl-Z are not for
/// it.
///
/// The parent may be a host program that does not know of us. If it waits for any child, it may
/// collect this one first; we then do not know how it ended.
class Child {
 public:
  /// Returns when the program has begun. Error: `failure` if it cannot be started.
  static Result<Child> spawn(const Command& command);
  /// The same by a fork of this process: the child calls `body`, and ends where that returns. It
  /// spares the start of a program. REQUIRES: this process has one thread, and no handler of a
  /// signal that the child must not have.
  static Result<Child> fork(const std::array<int, 3>& standard, const std::function<void()>& body);

  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept;
  /// Never blocks. A child that still runs is left alone, and collected by a later spawn or
  /// destruction.
  ~Child() { abandon(); }

  pid_t pid() const { return pid_; }
  /// How it ended; nullopt: it still runs after `patience`. Not to be called again after an answer.
  std::optional<ProcessEnd> wait(std::chrono::milliseconds patience);
  void kill(int signal) const;

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  void abandon();
  pid_t pid_ = -1;
};

}  // namespace berth::sys

/// For each function of such a child. The child has a stack of its own, which a sanitizer would
/// take for a violation of its parent's.
#define BERTH_BORROWED_MEMORY [[gnu::no_sanitize_address, gnu::no_sanitize_thread]]

namespace berth::sys {

/// Makes a child that borrows the memory of this process until it becomes another program or ends,
/// and calls `begin` in it. Meanwhile this thread sleeps; then it sees what `begin` has written. A
/// fork would copy the tables of all pages, and afterwards each page that either of the two writes.
///
/// REQUIRES: `begin` allocates nothing and takes no lock. This thread takes no signal (see
/// SignalsBlocked), since a handler would run in the child too.
///
/// `words`: how many its new program gets. -1: it could not be made; errno says why.
pid_t start_borrowing(int (*begin)(void*), void* argument, std::size_t words);

/// Makes this process that user's for good, with the groups that the system has for the user.
/// Closes all descriptors but the standard ones, so that the user cannot read through this process
/// what was open before. `group`: nullopt for the user's own. If this process is that user's
/// already, it only stays so. Error: `failure` if this process is neither root's nor that user's,
/// or if there is no such user and no group is given. REQUIRES: one thread; nothing open that is
/// still needed.
Result<void> become_user(uid_t user, std::optional<gid_t> group);

/// While it lives, this thread takes no signal. A thread or child that begins meanwhile has the
/// same mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Begins work that may hang for as long as a driver, a disk or a name service does. Nothing can
/// end a thread that hangs, so nobody waits for it: `work` must own what it uses, or use what lives
/// as long as the process. Signals are for the other threads. Throws std::system_error if the
/// system gives no thread.
void begin_detached(std::function<void()> work);

/// What work answers that may hang, such as a question to a driver or a file in a home directory. A
/// detached thread does the work, so that its asker can go on without it.
template <class T>
class DetachedAnswer {
 public:
  /// Nothing is asked.
  DetachedAnswer() = default;
  /// Begins `work`, which gives a T and must own what it uses. All that it has opened is closed
  /// when its answer is there: the process may end at once. If the system gives no thread, as under
  /// a limit on processes, there is no answer.
  template <class Work>
  explicit DetachedAnswer(Work work) {
    const auto promise = std::make_shared<std::promise<T>>();
    auto told = promise->get_future();
    try {
      begin_detached([promise, work = std::move(work)] { promise->set_value(work()); });
    } catch (const std::system_error&) {
      return;
    }
    told_ = std::move(told);
  }

  /// It was asked, and its answer was not taken.
  bool is_awaited() const { return told_.valid(); }
  /// The answer, to be called once. T{}: there is none, or none came within the patience.
  T within(std::chrono::milliseconds patience) {
    if (!told_.valid() || told_.wait_for(patience) != std::future_status::ready) return T{};
    return told_.get();
  }

 private:
  std::future<T> told_;
};

/// Writes a line to the terminal of `process`: the pseudo-terminal that controls the process,
/// belongs to the user for whom the process acts, and is its standard error. Otherwise writes
/// nothing. Opens nothing else, whatever the descriptors of the process are, and does not wait.
/// REQUIRES: the line is printable.
void write_to_terminal_of(pid_t process, std::string_view line);

/// Whether what is typed there is for this process: it is in the terminal's foreground. True as
/// well where the terminal is not that of its session, as nobody takes turns there then.
bool is_in_foreground_of(int terminal);

/// Whether a terminal with these modes treats keys and output the same.
bool are_same(const termios& one, const termios& other);

/// Stops this process as Ctrl-Z does. By SIGTSTP and not by SIGSTOP: the kernel ignores it where no
/// shell is left that could continue us. Returns when somebody continues it. REQUIRES: SIGTSTP is
/// blocked, and stays so.
void stop_as_by_terminal();

/// Two sides of a terminal that no screen belongs to. What is written to one is read from the
/// other. Both are close-on-exec.
struct PseudoTerminal {
  Descriptor ours;    ///< of the program that plays the screen and the keyboard
  Descriptor theirs;  ///< the terminal, as a command sees it
};

/// `user`: who gets it, for the error: "ssh". Error: `failure`.
Result<PseudoTerminal> make_pseudo_terminal(std::string_view user);

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
