#pragma once

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <stdexcept>
#include <utility>

namespace berth {

/// A real process for a test. It does its work, says that it is ready, and stays until it is
/// killed.
class Forked {
 public:
  /// `work` gives whether it succeeded. `uid`: whom to become first; needs root.
  explicit Forked(const std::function<bool()>& work, uid_t uid = ::geteuid()) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (uid != ::geteuid() && (::setgid(uid) != 0 || ::setuid(uid) != 0)) ::_exit(2);
      const char answer = work() ? 'y' : 'n';
      if (::write(ends[1], &answer, 1) != 1) ::_exit(3);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char answer = '?';
    // A hang guard only: a minute is longer than any of this takes on a busy machine.
    pollfd ready{ends[0], POLLIN, 0};
    if (::poll(&ready, 1, 60'000) == 1 && ::read(ends[0], &answer, 1) != 1) answer = '?';
    ::close(ends[0]);
    succeeded_ = answer == 'y';
  }
  ~Forked() { kill(); }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  bool succeeded() const { return succeeded_; }
  pid_t pid() const { return pid_; }
  /// Nothing once it was killed: its pid is -1 then, which kill(2) takes for everybody.
  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  /// SIGKILL, and waits until the kernel has taken everything back.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  bool succeeded_ = false;
};

/// Looks again until it holds, or half a minute is over: then something hangs.
inline bool eventually(const std::function<bool()>& holds) {
  for (int attempt = 0; attempt < 30'000; ++attempt) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace berth
