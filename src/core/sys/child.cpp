#include "berth/sys/job_process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "berth/base/text.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::sys {
namespace {

/// The instructions for the child, and the errno of a failed start. It lives on the parent's stack.
struct Start {
  char* const* arguments;
  char* const* environment;
  int input;
  int output;
  int error;
  bool controls_terminal;
  int error_number = 0;
};

/// A copy of `wanted` above the standard three, which are about to be overwritten.
BERTH_BORROWED_MEMORY int out_of_the_way(int wanted) {
  return wanted >= 0 && wanted <= 2 ? fcntl(wanted, F_DUPFD_CLOEXEC, 3) : wanted;
}

/// Makes `target` the wanted descriptor, or /dev/null.
BERTH_BORROWED_MEMORY bool place(int wanted, int target) {
  const int source = wanted >= 0 ? wanted : open("/dev/null", O_RDWR | O_CLOEXEC);
  if (source == target) return fcntl(source, F_SETFD, 0) == 0;
  return source >= 0 && dup2(source, target) == target;
}

/// No signal is blocked from here on. One that came while all were would still find a handler of
/// the parent: it was meant for the terminal's foreground, which the child has left, and is
/// dropped.
BERTH_BORROWED_MEMORY void accept_signals() {
  sigset_t signals;
  sigfillset(&signals);
  const timespec at_once{};
  while (sigtimedwait(&signals, nullptr, &at_once) > 0) continue;
  sigemptyset(&signals);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
}

/// The child's first steps. It may share the parent's memory: nothing here may allocate or take a
/// lock. False: it has not its descriptors.
BERTH_BORROWED_MEMORY bool settle(const Start& start) {
  const int input = out_of_the_way(start.input);
  const int output = out_of_the_way(start.output);
  const int error = out_of_the_way(start.error);
  setsid();
  if (start.controls_terminal) ioctl(input, TIOCSCTTY, 0);
  if (!place(input, 0) || !place(output, 1) || !place(error, 2)) return false;
  close_above_standard();
  accept_signals();
  return true;
}

BERTH_BORROWED_MEMORY int begin(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  if (settle(start)) execvpe(start.arguments[0], start.arguments, start.environment);
  start.error_number = errno;
  _exit(127);
}

std::optional<ProcessEnd> collect(pid_t pid) {
  int status = 0;
  const pid_t found = waitpid(pid, &status, WNOHANG);
  if (found == 0) return std::nullopt;
  if (found < 0) return ProcessEnd{.exit_status = -1, .signal = 0};
  if (WIFSIGNALED(status)) return ProcessEnd{.exit_status = 0, .signal = WTERMSIG(status)};
  return ProcessEnd{.exit_status = WEXITSTATUS(status), .signal = 0};
}

/// Children whose owner is gone while they still ran. They would stay zombies for as long as this
/// process lives.
class Abandoned {
 public:
  void add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }
  void collect_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return collect(pid).has_value(); });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

// Never destroyed: a detached thread may abandon a child while this process ends.
Abandoned& abandoned() {
  static auto& instance = *new Abandoned;
  return instance;
}

}  // namespace

BERTH_BORROWED_MEMORY void close_above_standard() {
  if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
  // Kernels before 5.9. The limit may be in the millions; nobody who uses that many runs so old a
  // kernel.
  const long limit = sysconf(_SC_OPEN_MAX);
  for (int descriptor = 3; descriptor < limit && descriptor < 65536; ++descriptor) close(descriptor);
}

std::string to_text(const ProcessEnd& ending) {
  if (ending.signal == 0 && ending.exit_status < 0) return "an unknown exit status";
  if (ending.signal == 0) return "exit status " + std::to_string(ending.exit_status);
  return "signal " + std::to_string(ending.signal) + " (" + std::string(::strsignal(ending.signal)) + ")";
}

Result<Child> Child::spawn(const Command& command) {
  abandoned().collect_ended();
  std::vector<char*> arguments{const_cast<char*>(command.program.c_str())};
  for (const std::string& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  if (command.environment) {
    for (const std::string& variable : *command.environment)
      environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
  }

  Start start{.arguments = arguments.data(),
              .environment = command.environment ? environment.data() : environ,
              .input = command.input,
              .output = command.output,
              .error = command.error,
              .controls_terminal = command.controls_terminal};
  pid_t pid = -1;
  int clone_error = 0;
  {
    const SignalsBlocked blocked;
    pid = start_borrowing(begin, &start, arguments.size());
    clone_error = errno;
  }
  if (pid < 0) return std::unexpected(system_error(clone_error, "making a child process"));
  Child child(pid);
  if (start.error_number != 0)
    return std::unexpected(system_error(start.error_number, "starting " + command.program));
  return child;
}

Result<Child> Child::fork(const std::array<int, 3>& standard, const std::function<void()>& body) {
  const auto [input, output, error] = standard;
  const Start start{.arguments = nullptr,
                    .environment = nullptr,
                    .input = input,
                    .output = output,
                    .error = error,
                    .controls_terminal = false};
  pid_t pid = -1;
  int fork_error = 0;
  {
    const SignalsBlocked blocked;
    pid = ::fork();
    fork_error = errno;
    if (pid == 0) {
      if (settle(start)) body();
      _exit(127);
    }
  }
  if (pid < 0) return std::unexpected(system_error(fork_error, "making a child process"));
  return Child(pid);
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    abandon();
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

std::optional<ProcessEnd> Child::wait(std::chrono::milliseconds patience) {
  auto ending = collect(pid_);
  if (!ending && patience.count() > 0) {
    const auto until = std::chrono::steady_clock::now() + patience;
    const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
    // A host program may have handlers of signals, and a timer that sends some.
    while (process && poll(&ended, 1, poll_timeout(until)) < 0 && errno == EINTR) continue;
    ending = collect(pid_);
  }
  if (ending) pid_ = -1;
  return ending;
}

void Child::kill(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void Child::abandon() {
  if (pid_ > 0 && !collect(pid_)) abandoned().add(pid_);
  pid_ = -1;
}

}  // namespace berth::sys

// By clone(2) and not by posix_spawn(3), which asks for each of 64 signals in turn what its handler
// is: a third of the time that a start takes. The handlers matter because none of them may run in
// the child.

#ifdef __SANITIZE_THREAD__
// TSan's clone() takes the child for a fork, though it borrows our memory, and watches this thread
// no more.
extern "C" int __clone(int (*)(void*), void*, int, void*, ...) noexcept;
#define clone __clone
#endif

namespace berth::sys {
namespace {

constexpr std::size_t kOwnFrames = 32 << 10;
constexpr std::size_t kAlignment = 16;

}  // namespace

pid_t start_borrowing(int (*begin)(void*), void* argument, std::size_t words) {
  // A script without "#!" is given to a shell: the C library then copies all words to the stack.
  const std::size_t size = kOwnFrames + (words * sizeof(char*) / kAlignment + 1) * kAlignment;
  const auto stack = std::make_unique_for_overwrite<char[]>(size);
  return clone(begin, stack.get() + size, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
}

Result<void> become_user(uid_t user, std::optional<gid_t> group) {
  if (::geteuid() == user && ::getuid() == user) return {};
  if (::geteuid() != 0) return fail(ErrorCode::failure, "only root can act for uid {}", user);
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* known = nullptr;
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &known) != 0) known = nullptr;
  if (!group && known != nullptr) group = known->pw_gid;
  if (!group) return fail(ErrorCode::failure, "the system knows no user with the uid {}", user);
  close_above_standard();
  const int groups = known != nullptr ? ::initgroups(known->pw_name, *group) : ::setgroups(0, nullptr);
  if (groups != 0 || ::setresgid(*group, *group, *group) != 0 || ::setresuid(user, user, user) != 0)
    return fail_errno(fmt::format("becoming uid {}", user));
  // Else its own /proc would be root's, and its user could not see what it holds.
  ::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

void begin_detached(std::function<void()> work) {
  const SignalsBlocked blocked;
  std::thread(std::move(work)).detach();
}

}  // namespace berth::sys
