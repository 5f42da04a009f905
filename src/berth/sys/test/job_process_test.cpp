#include "berth/sys/job_process.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

namespace berth::sys::job_process_test {

namespace {

// Leads the session of a terminal, and looks at its command only when that has ended.
[[noreturn]] void look_late(const std::string& script) {
  const HeldTermination held;
  JobCommand command;
  command.words = {"sh", "-c", script};
  auto job = JobProcess::start(command, held);
  if (!job) ::_exit(100);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(job->pid()), &info, WEXITED | WNOWAIT);
  std::optional<JobEnding> ending;
  {
    // At its end what is still pending arrives.
    JobProcess watched = std::move(*job);
    ending = watched.wait(std::nullopt);
  }
  ::_exit(ending ? ending->exit_status : 101);
}

}  // namespace

TEST_CASE("a terminal that closes just before the command ends leaves the command its own status") {
  std::string folder = "/tmp/berth_job_XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string begun = folder + "/begun";
  const std::string goes_on = folder + "/goes_on";
  REQUIRE(::mkfifo(begun.c_str(), 0600) == 0);
  REQUIRE(::mkfifo(goes_on.c_str(), 0600) == 0);
  int terminal = -1;
  const pid_t leader = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(leader >= 0);
  if (leader == 0) look_late("trap '' HUP; : >" + begun + "; read x <" + goes_on + "; exit 7");

  ::close(::open(begun.c_str(), O_RDONLY | O_CLOEXEC));
  ::close(terminal);
  ::close(::open(goes_on.c_str(), O_WRONLY | O_CLOEXEC));
  int status = 0;
  CHECK(::waitpid(leader, &status, 0) == leader);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);

  for (const std::string& path : {begun, goes_on}) ::unlink(path.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace berth::sys::job_process_test
