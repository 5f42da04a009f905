#include "berth/sys/job_process.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "berth/sys/descriptor.h"

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
  std::optional<ProcessEnd> ending;
  {
    // At its end what is still pending arrives.
    JobProcess watched = std::move(*job);
    ending = watched.wait(std::nullopt);
  }
  ::_exit(ending ? ending->exit_status : 101);
}

constexpr int kNeverBegun = 50;

// Of the command; if it has not begun, kNeverBegun more than what says why. A process of its own
// starts it, since that takes all signals and all orphans.
int status_of(const JobCommand& command) {
  const pid_t starter = ::fork();
  REQUIRE(starter >= 0);
  if (starter == 0) {
    const HeldTermination held;
    auto job = JobProcess::start(command, held);
    if (!job) ::_exit(job.error().exit_status + kNeverBegun);
    const auto ending = job->wait(std::nullopt);
    ::_exit(ending ? ending->exit_status : 101);
  }
  int status = 0;
  CHECK(::waitpid(starter, &status, 0) == starter);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a command has the last value of each variable, and none that is to be left out") {
  for (const char* name : {"BERTH_KEPT", "BERTH_GIVEN", "BERTH_LEFT_OUT"}) ::setenv(name, "ours", 1);
  JobCommand command;
  command.words = {"sh", "-c", "[ $BERTH_KEPT,$BERTH_GIVEN,${BERTH_LEFT_OUT-none} = ours,last,none ]"};
  command.environment = {{"BERTH_GIVEN", "first"}, {"BERTH_GIVEN", "last"}};
  command.unset = {"BERTH_LEFT_OUT", "BERTH_GIVEN"};
  CHECK(status_of(command) == 0);
  for (const char* name : {"BERTH_KEPT", "BERTH_GIVEN", "BERTH_LEFT_OUT"}) ::unsetenv(name);
}

TEST_CASE("a command that cannot be executed says so, and is no command that has ended") {
  JobCommand command;
  command.words = {"/"};
  CHECK(status_of(command) == kNeverBegun + 126);
  command.words = {"/nowhere/program"};
  CHECK(status_of(command) == kNeverBegun + 127);
}

TEST_CASE("a script without a first line that names a program gets all of its words, however many") {
  std::string path = "/tmp/berth_script_XXXXXX";
  Descriptor file(::mkstemp(path.data()));
  constexpr std::string_view kScript = "exit $(( $# / 1000 ))\n";
  REQUIRE(::write(file.get(), kScript.data(), kScript.size()) == static_cast<ssize_t>(kScript.size()));
  REQUIRE(::fchmod(file.get(), 0700) == 0);
  file.close();  // while a file is open for writing, nobody can execute it
  JobCommand command;
  command.words.assign(20001, "word");
  command.words.front() = path;
  CHECK(status_of(command) == 20);
  ::unlink(path.c_str());
}

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
