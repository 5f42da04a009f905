#include "berth/sys/job_process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ranges>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::sys {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
// Shells use numbers up to 9 by name and a few dozen for themselves; from here on nobody is
// surprised.
constexpr int kFirstInherited = 100;
constexpr rlim_t kPlenty = 1024;
// More than the generations of any real job, also if some end while they are looked at.
constexpr int kMostSteps = 256;

// All signals that can be waited for. Faults are not to be blocked: they have to kill.
sigset_t signals_to_hold() {
  sigset_t set;
  ::sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    ::sigdelset(&set, fault);
  return set;
}

// Gives the mask of before.
sigset_t hold_signals() {
  const sigset_t set = signals_to_hold();
  sigset_t before;
  ::sigprocmask(SIG_SETMASK, &set, &before);
  // Where it was ignored, ended children would vanish unseen.
  ::signal(SIGCHLD, SIG_DFL);
  return before;
}

// The kernel tells nobody else that the terminal has closed.
bool is_hang_up_of_leader(int signal, const siginfo_t& info) {
  return signal == SIGHUP && info.si_code == SI_KERNEL && ::getsid(0) == ::getpid();
}

std::optional<siginfo_t> pending(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  siginfo_t info{};
  const timespec at_once{};
  return ::sigtimedwait(&set, &info, &at_once) == signal ? std::optional(info) : std::nullopt;
}

// If the signal stayed pending, it would end this process before it has reported how the command
// ended.
bool is_hang_up_pending() {
  const auto info = pending(SIGHUP);
  return info && is_hang_up_of_leader(SIGHUP, *info);
}

// Does what the kernel does when a session leader ends. This process is in the group too, and has
// blocked the signal.
void hang_up_group() {
  ::kill(0, SIGHUP);
  ::kill(0, SIGCONT);
  pending(SIGHUP);
}

// The signals of Ctrl-Z, and those for a job in the background that uses the terminal.
bool is_of_the_terminal(int stop_signal) {
  return stop_signal == SIGTSTP || stop_signal == SIGTTIN || stop_signal == SIGTTOU;
}

bool is_of_a_bell(int signal, const siginfo_t& info) {
  return signal == SIGIO && info.si_code == SI_KERNEL;
}

// nullopt: none.
std::optional<timespec> time_left(std::chrono::steady_clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  if (left.count() <= 0) return std::nullopt;
  return timespec{left.count() / 1000, (left.count() % 1000) * 1'000'000};
}

// A variable without its value.
std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// 0, or why this file cannot be executed.
int file_error(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// The file that a program's name leads to.
struct ProgramFile {
  std::string path;  ///< the name itself, if it leads to none on PATH
  int error = 0;     ///< why it cannot be executed
};

ProgramFile find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name, file_error(name)};
  ProgramFile found{name, ENOENT};
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  while (!rest.empty() && found.error != 0) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    std::string here = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    const int error = file_error(here);
    // As exec does: one that may not be executed gives way to a later one, and named if there
    // is none.
    if (error == 0) found = {std::move(here), 0};
    if (error == EACCES) found.error = error;
  }
  return found;
}

// The words and the environment of a command, as exec wants them.
class ExecArguments {
 public:
  // REQUIRES: the command outlives this.
  explicit ExecArguments(const JobCommand& command) : path_(find_program(command.words.front()).path) {
    for (const std::string& word : command.words) words_.push_back(const_cast<char*>(word.c_str()));
    words_.push_back(nullptr);
    std::unordered_set<std::string_view> not_ours;
    added_.reserve(command.environment.size());
    // The last value of a name is the one that counts.
    for (const auto& [name, value] : command.environment | std::views::reverse) {
      if (not_ours.insert(name).second) add(added_.emplace_back(fmt::format("{}={}", name, value)).data());
    }
    not_ours.insert(command.unset.begin(), command.unset.end());
    for (char** each = environ; *each != nullptr; ++each) {
      if (!not_ours.contains(name_of(*each))) add(*each);
    }
    add(nullptr);
  }

  // Not looked for in the child: a network disk on PATH may take long, and Ctrl-Z may come
  // meanwhile.
  const char* path() const { return path_.c_str(); }
  char* const* words() const { return words_.data(); }
  char* const* variables() const { return variables_.data(); }
  std::size_t count() const { return words_.size(); }

 private:
  void add(char* variable) { variables_.push_back(variable); }

  std::string path_;
  std::vector<char*> words_;
  std::vector<std::string> added_;
  std::vector<char*> variables_;
};

// In the child, which borrows the memory of this process: here nothing is allocated.
BERTH_BORROWED_MEMORY bool take_terminal(int terminal) {
  // The keys of that terminal send signals to the command then, and not to us.
  if (::setsid() < 0 || ::ioctl(terminal, TIOCSCTTY, 0) != 0) return false;
  return ::dup2(terminal, STDIN_FILENO) >= 0 && ::dup2(terminal, STDOUT_FILENO) >= 0 &&
         ::dup2(terminal, STDERR_FILENO) >= 0;
}

// In the child, as above. If Ctrl-Z stopped it before its exec, this process would wait for that
// exec, and its shell for this process. What is handled here has its default again after the exec.
BERTH_BORROWED_MEMORY void stop_at_no_key() {
  struct sigaction nothing{};
  nothing.sa_handler = [](int) {};
  for (const int key : {SIGTSTP, SIGTTIN, SIGTTOU}) {
    struct sigaction before{};
    if (::sigaction(key, &nothing, &before) == 0 && before.sa_handler != SIG_DFL)
      ::sigaction(key, &before, nullptr);
  }
}

// In the child, as above. `mask`: of the command; null: as it is. Gives the errno of a failed exec.
BERTH_BORROWED_MEMORY int replace_by(const JobCommand& command, const ExecArguments& arguments,
                                     const sigset_t* mask) {
  if (command.terminal >= 0 && !take_terminal(command.terminal)) return errno;
  for (const int descriptor : command.inherited) {
    if (::fcntl(descriptor, F_DUPFD, kFirstInherited) >= 0) continue;
    return errno == EINVAL ? EMFILE : errno;  // the limit lies below that number
  }
  // After them: a low limit on open files would keep the copies of descriptors away.
  set_limits(command.limits);
  if (mask != nullptr) {
    stop_at_no_key();
    ::sigprocmask(SIG_SETMASK, mask, nullptr);
  }
  ::execvpe(arguments.path(), arguments.words(), arguments.variables());
  return errno;
}

// `path`: of the program's file, if it was found.
NotStarted not_started(const std::string& program, std::string_view path, int error) {
  const bool missing = error == ENOENT;
  if (missing && path.contains('/') && ::access(std::string(path).c_str(), F_OK) == 0)
    return {kNotFound, fmt::format("{}: this file is there, but not the program that its first line names to "
                                   "run it",
                                   path)};
  if (missing && program.find('/') == std::string::npos)
    return {kNotFound, program.empty() ? "the name of the command is empty"
                                       : fmt::format("{}: there is no such command on PATH", program)};
  return {missing ? kNotFound : kNotExecutable, system_error(error, program).message};
}

// All that the child needs, and the errno of a start that failed.
struct CommandStart {
  const JobCommand& command;
  const ExecArguments& arguments;
  pid_t parent;
  const sigset_t& mask;
  int error = 0;
};

BERTH_BORROWED_MEMORY int be_the_command(void* argument) {
  CommandStart& start = *static_cast<CommandStart*>(argument);
  // If this process is killed, the job ends too.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != start.parent) ::_exit(kNotExecutable);
  start.error = replace_by(start.command, start.arguments, &start.mask);
  ::_exit(kNotExecutable);
}

}  // namespace

std::optional<NotStarted> cannot_start(const std::vector<std::string>& words) {
  const auto [path, error] = find_program(words.front());
  return error == 0 ? std::nullopt : std::optional(not_started(words.front(), path, error));
}

std::optional<NotStarted> cannot_inherit(std::size_t descriptors) {
  rlimit limit{};
  // Where there is plenty, those that others have left us are not in the way.
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kPlenty) return std::nullopt;
  std::vector<Descriptor> tried;
  while (tried.size() < descriptors) {
    tried.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kFirstInherited));
    if (tried.back()) continue;
    return NotStarted{
        kNotExecutable,
        fmt::format("the limit of open files is {} (ulimit -n), and a command holds its lease by "
                    "{} files numbered from {} on: raise it",
                    limit.rlim_cur, descriptors, kFirstInherited)};
  }
  return std::nullopt;
}

NotStarted exec_job(const JobCommand& command) {
  const ExecArguments arguments(command);
  const int error = replace_by(command, arguments, nullptr);
  return not_started(command.words.front(), arguments.path(), error);
}

HeldTermination::HeldTermination() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, &mask_before_);
}

HeldTermination::~HeldTermination() {
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::expected<JobProcess, NotStarted> JobProcess::start(const JobCommand& command,
                                                        const HeldTermination& held,
                                                        std::set<UniqueProcess> others) {
  const ExecArguments arguments(command);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t mask = hold_signals();
  CommandStart start{command, arguments, ::getpid(), held.mask_before()};
  const pid_t child = start_borrowing(be_the_command, &start, arguments.count());
  const int error = child > 0 ? start.error : errno;
  if (error == 0) return JobProcess(child, mask, std::move(others));
  if (child > 0) ::waitpid(child, nullptr, 0);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  return std::unexpected(not_started(command.words.front(), arguments.path(), error));
}

JobProcess::JobProcess(JobProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      others_(std::move(other.others_)),
      mask_before_(other.mask_before_),
      hung_up_(other.hung_up_),
      call_(other.call_) {}

JobProcess::~JobProcess() {
  if (pid_ > 0) ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

// An orphan of the job is a child of this process.
bool JobProcess::is_of_job(pid_t pid) const {
  pid_t one = pid;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto stat = process_stat(one);
    if (stat && stat->parent == ::getpid()) return !others_.contains(stat->process);
    if (!stat && one == pid) return false;
    // A parent that has ended meanwhile has left its children to another.
    one = stat ? stat->parent : pid;
    if (one == 0) return false;
  }
  return false;
}

// Whether a process of the job may have sent it to its group, as `kill 0` does. A process of
// another group, as a shell with job control makes them, means us, and a signal that is queued goes
// to one process.
bool JobProcess::is_to_group(const siginfo_t& info) const {
  return info.si_code == SI_USER && ::getpgid(info.si_pid) == ::getpgrp() && is_of_job(info.si_pid);
}

void JobProcess::note_call(const siginfo_t& info) {
  const bool is_of_job = is_to_group(info);
  // The terminal has sent it to the whole foreground group.
  if (info.si_code == SI_KERNEL || (is_of_job && call_)) return;
  call_ = {.sender = {info.si_uid, info.si_pid}, .is_cancel = is_cancel(info), .is_of_job = is_of_job};
}

std::optional<EndCall> JobProcess::take_call() {
  if (const auto call = pending(SIGTERM)) note_call(*call);
  return std::exchange(call_, std::nullopt);
}

std::optional<ProcessEnd> JobProcess::collect() {
  for (;;) {
    siginfo_t child{};
    if (::waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 || child.si_pid == 0)
      return std::nullopt;
    // Somebody may have asked before this process looked. As long as a child is not collected, it
    // can be found that it was the child.
    if (const auto call = pending(SIGTERM)) note_call(*call);
    int status = 0;
    if (::waitpid(child.si_pid, &status, WNOHANG | WUNTRACED) != pid_) continue;
    if (!WIFSTOPPED(status) && (is_hang_up_pending() || hung_up_)) hang_up_group();
    if (WIFEXITED(status)) return ProcessEnd{WEXITSTATUS(status), 0};
    if (WIFSIGNALED(status)) return ProcessEnd{0, WTERMSIG(status)};
    // The shell that started us shall see its job stopped. Whoever stops the command by SIGSTOP
    // continues it the same way and knows nothing of us: stopped as well, we would hold the lease
    // for ever.
    const auto command = process_stat(pid_);
    if (!is_of_the_terminal(WSTOPSIG(status)) || !command || !command->stopped()) continue;
    stop_as_by_terminal();
    ::kill(pid_, SIGCONT);
  }
}

std::optional<ProcessEnd> JobProcess::wait(Deadline until) {
  const sigset_t set = signals_to_hold();
  for (;;) {
    if (const auto ending = collect(); ending || call_) return ending;
    const auto left = until ? time_left(*until) : std::nullopt;
    if (until && !left) return std::nullopt;
    siginfo_t info{};
    const int signal = ::sigtimedwait(&set, &info, left ? &*left : nullptr);
    if (signal > 0 && (info.si_code == SI_TIMER || is_of_a_bell(signal, info))) return collect();
    if (is_hang_up_of_leader(signal, info)) {
      hung_up_ = true;
      ::kill(pid_, SIGHUP);
      ::kill(pid_, SIGCONT);
    } else if (signal == SIGTERM) {
      note_call(info);
      return collect();
    } else if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL && info.si_pid != pid_ &&
               !is_to_group(info)) {
      ::kill(pid_, signal);
    }
    if (signal == SIGCHLD && info.si_pid != pid_) return collect();
  }
}

std::optional<JobProcess::Event> JobProcess::wait_for_leftovers(std::chrono::steady_clock::time_point until) {
  const sigset_t set = signals_to_hold();
  for (;;) {
    const auto left = time_left(until);
    if (!left) return std::nullopt;
    siginfo_t info{};
    const int signal = ::sigtimedwait(&set, &info, &*left);
    if (signal == SIGCHLD) return Event::child_ended;
    if (is_of_a_bell(signal, info)) return Event::rung;
    if (signal == SIGTSTP) stop_as_by_terminal();
    if (signal == SIGTERM) {
      note_call(info);
      return Event::asked_to_end;
    }
    if (is_to_group(info)) continue;
    if (signal == SIGHUP) return Event::hung_up;
    if (signal == SIGINT || signal == SIGQUIT) return Event::asked_to_leave;
  }
}

JobProcess::Children JobProcess::collect_children() {
  Children children;
  pid_t one = 0;
  while ((one = ::waitpid(-1, nullptr, WNOHANG)) > 0) children.have_ended = true;
  children.are_left = one == 0;
  return children;
}

void end_like(const ProcessEnd& ending) {
  if (ending.signal == 0) ::_exit(ending.exit_status);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(ending.signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, ending.signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(ending.signal);
  ::_exit(128 + ending.signal);
}

}  // namespace berth::sys
