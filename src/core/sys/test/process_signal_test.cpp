#include "berth/sys/process.h"

#include <doctest/doctest.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>

#include "berth/sys/job_process.h"

namespace berth::sys::process_signal_test {
namespace {

/// A child that lives until it gets a signal.
class Child {
 public:
  Child() {
    // It acts on no signal before it has no handler of this test's any more.
    const SignalsBlocked blocked;
    pid_ = ::fork();
    if (pid_ == 0) wait_for_ever();
  }
  /// Gets this pid, if no process has it and this user may choose.
  explicit Child(pid_t wanted) {
    clone_args how{};
    how.exit_signal = SIGCHLD;
    how.set_tid = reinterpret_cast<std::uint64_t>(&wanted);
    how.set_tid_size = 1;
    pid_ = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
    if (pid_ == 0) wait_for_ever();
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Also when it has ended by a signal, which is collected.
  int how_it_ends() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    how_it_ends();
  }

 private:
  [[noreturn]] static void wait_for_ever() {
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    ::signal(SIGTERM, SIG_DFL);
    ::sigprocmask(SIG_UNBLOCK, &term, nullptr);
    for (;;) ::pause();
  }

  pid_t pid_ = -1;
};

TEST_CASE("a signal goes to the process that is meant, and to no other that has its pid") {
  Child child;
  const UniqueProcess process = unique_process(child.pid());
  const UniqueProcess earlier{process.pid, process.start_ticks - 1};
  CHECK_FALSE(send_signal(earlier, SIGKILL));
  CHECK_FALSE(ask_to_end(earlier));
  CHECK_FALSE(ask_to_cancel(earlier));
  CHECK_FALSE(send_signal(child.pid(), SIGKILL, [](pid_t) { return false; }));
  CHECK(child.lives());
  CHECK(ask_to_end(process));
  CHECK(WTERMSIG(child.how_it_ends()) == SIGTERM);
  CHECK_FALSE(send_signal(process, SIGKILL));
}

TEST_CASE("a process that gets the pid while it is asked whose that is gets no signal") {
  for (const auto send :
       {+[](pid_t to, const IsMeant& is_meant) { return send_signal(to, SIGKILL, is_meant); },
        +[](pid_t to, const IsMeant& is_meant) { return ask_to_end(to, is_meant); }}) {
    Child child;
    const pid_t pid = child.pid();
    std::optional<Child> stranger;
    const bool sent = send(pid, [&](pid_t) {
      child.end();
      stranger.emplace(pid);
      return true;
    });
    if (stranger->pid() != pid) {
      MESSAGE("skipped: needs the right to choose a pid");
      return;
    }
    CHECK_FALSE(sent);
    CHECK(stranger->lives());
  }
}

TEST_CASE("whom a user may signal goes by the real and the saved uid") {
  CHECK(may_be_signalled_by(::getuid(), ::getpid()));
  CHECK(may_be_signalled_by(0, ::getpid()));
  CHECK_FALSE(may_be_signalled_by(::getuid() + 1, ::getpid()));
  if (::geteuid() != 0) {
    MESSAGE("skipped: needs root");
    return;
  }
  // As a program that a user starts and that acts as root: its user may still end it.
  constexpr uid_t kUser = 20001;
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const char done = ::setresuid(kUser, 0, 0) == 0 ? 'y' : 'n';
    if (::write(ready[1], &done, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char done = 'n';
  CHECK(::read(ready[0], &done, 1) == 1);
  CHECK(done == 'y');
  CHECK(may_be_signalled_by(kUser, pid));
  CHECK(process_owner(pid) == uid_t{0});
  CHECK_FALSE(may_be_signalled_by(kUser + 1, pid));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  for (const int end : ready) ::close(end);
}

}  // namespace
}  // namespace berth::sys::process_signal_test
