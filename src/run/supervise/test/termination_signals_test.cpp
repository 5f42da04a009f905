#include "berth/supervise/lease_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <doctest/doctest.h>

namespace berth::supervise::termination_signals_test {
namespace {

// The signal by which a shell ends that is hung up, and then told to end.
int signal_of_shell(bool has_ended) {
  // Until it is ready for them. Of two that came meanwhile, SIGHUP is the first to arrive.
  sigset_t both;
  ::sigemptyset(&both);
  for (const int each : {SIGHUP, SIGTERM}) ::sigaddset(&both, each);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &both, &before);
  const pid_t shell = ::fork();
  if (shell == 0) {
    for (const int each : {SIGHUP, SIGTERM}) ::signal(each, SIG_DFL);
    ::sigprocmask(SIG_UNBLOCK, &both, nullptr);
    for (;;) ::pause();
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(shell > 0);
  TerminationSignals end;
  end.command_is(shell, true);
  if (has_ended) end.command_has_ended();
  end.hang_up_shell();
  ::kill(shell, SIGTERM);
  int status = 0;
  CHECK(::waitpid(shell, &status, 0) == shell);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("a shell that has ended is not hung up, since another process may have its pid by then") {
  CHECK(signal_of_shell(false) == SIGHUP);
  CHECK(signal_of_shell(true) == SIGTERM);
}

}  // namespace
}  // namespace berth::supervise::termination_signals_test
