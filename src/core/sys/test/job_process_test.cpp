#include "berth/sys/job_process.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "berth/sys/file.h"
#include "berth/sys/process.h"

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

/// A command whose parent leads a process group of its own. Of two FIFOs in a folder, the command
/// reads the one and what it starts the other.
struct Group {
  std::string folder = "/tmp/berth_group_XXXXXX";
  std::string goes_on;
  std::string sends;

  Group() {
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    goes_on = folder + "/goes_on";
    sends = folder + "/sends";
    for (const std::string& path : {goes_on, sends}) REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  }
  ~Group() {
    for (const std::string& path : {goes_on, sends}) ::unlink(path.c_str());
    ::rmdir(folder.c_str());
  }

  // The exit status of the command, and kAsked more if somebody else has asked that it end.
  // `before`: is called in the parent, before it starts the command, and gives the children that
  // are no part of the job. `meanwhile`: is called before the parent looks at its job.
  int status_of(const std::string& script, const std::function<std::set<UniqueProcess>()>& before,
                const std::function<void(JobProcess&)>& meanwhile) const {
    const pid_t leader = ::fork();
    REQUIRE(leader >= 0);
    if (leader == 0) {
      ::setpgid(0, 0);
      const std::set<UniqueProcess> others = before();
      const HeldTermination held;
      JobCommand command;
      command.words = {"sh", "-c", "trap '' TERM; exec 3<>" + sends + " 4<>" + goes_on + "; " + script};
      auto job = JobProcess::start(command, held, others);
      if (!job) ::_exit(100);
      meanwhile(*job);
      bool is_asked = false;
      std::optional<ProcessEnd> ending;
      while (!ending) {
        ending = job->wait(std::nullopt);
        const auto call = job->take_call();
        is_asked = is_asked || (call && !call->is_of_job);
      }
      ::_exit(ending->exit_status + (is_asked ? kAsked : 0));
    }
    int status = 0;
    CHECK(::waitpid(leader, &status, 0) == leader);
    ::kill(-leader, SIGKILL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void let_go_on() const {
    const Descriptor fifo(::open(goes_on.c_str(), O_WRONLY | O_CLOEXEC));
    [[maybe_unused]] const ssize_t written = ::write(fifo.get(), "\n", 1);
  }

  static constexpr int kAsked = 50;
};

std::set<UniqueProcess> no_others() {
  return {};
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

TEST_CASE("a signal that what the command started sends to its group asks nobody to end the job") {
  const Group group;
  const std::string sender = "(kill -TERM 0; echo >&4; exec sleep 1000 3>&- 4>&-) & read x <&4; exit 7";
  CHECK(group.status_of(sender, no_others, [](JobProcess&) {}) == 7);
}

TEST_CASE("such a signal is known by its sender also if that has ended before anybody looked") {
  const Group group;
  // An orphan sends it, so that nobody but the parent of the command collects the sender.
  const std::string script = "( (read x <&3; kill -TERM 0) & ); echo >&3; read x <&4; exit 7";
  const auto look_late = [&](JobProcess& job) {
    siginfo_t orphan{};
    ::waitid(P_ALL, 0, &orphan, WEXITED | WNOWAIT);
    job.wait(std::chrono::steady_clock::now());
    group.let_go_on();
  };
  CHECK(group.status_of(script, no_others, look_late) == 7);
}

TEST_CASE("a process of the job in another group, as job control makes them, asks to end the job") {
  const Group group;
  // The shell itself leaves its group alone.
  const std::string script =
      "bash -c \"set -m; (kill -TERM $PPID; echo >&4; exec sleep 5 3>&- 4>&-) &\"; read x <&4; exit 7";
  CHECK(group.status_of(script, no_others, [](JobProcess&) {}) == 7 + Group::kAsked);
}

TEST_CASE("a signal to the group from a child that was there before the command asks to end the job") {
  const Group group;
  const auto start_another = [&]() -> std::set<UniqueProcess> {
    const pid_t other = ::fork();
    if (other == 0) {
      const Descriptor fifo(::open(group.sends.c_str(), O_RDONLY | O_CLOEXEC));
      ::signal(SIGTERM, SIG_IGN);
      char byte = 0;
      [[maybe_unused]] const ssize_t got = ::read(fifo.get(), &byte, 1);
      ::kill(0, SIGTERM);
      group.let_go_on();
      for (;;) ::pause();
    }
    return unique_processes({other});
  };
  CHECK(group.status_of("echo >&3; read x <&4; exit 7", start_another, [](JobProcess&) {}) ==
        7 + Group::kAsked);
}

TEST_CASE("a signal whose sender cannot be found any more asks to end the job") {
  const Group group;
  const auto send_and_end = [&](JobProcess&) {
    // The collector of the sender is a process of its own, since this one takes all orphans.
    const pid_t self = ::getpid();
    const pid_t collector = ::fork();
    if (collector == 0) {
      const pid_t sender = ::fork();
      if (sender == 0) {
        ::kill(self, SIGTERM);
        ::_exit(0);
      }
      ::waitpid(sender, nullptr, 0);
      group.let_go_on();
      for (;;) ::pause();
    }
    siginfo_t command{};
    ::waitid(P_ALL, 0, &command, WEXITED | WNOWAIT);
  };
  CHECK(group.status_of("read x <&4; exit 7", no_others, send_and_end) == 7 + Group::kAsked);
}

TEST_CASE("a process of the job that asks its holder by name to end the job is obeyed") {
  const Group group;
  const auto ask = [&](JobProcess&) {
    const pid_t self = ::getpid();
    if (::fork() == 0) {
      ask_to_end(unique_process(self));
      group.let_go_on();
      for (;;) ::pause();
    }
  };
  CHECK(group.status_of("read x <&4; exit 7", no_others, ask) == 7 + Group::kAsked);
}

}  // namespace berth::sys::job_process_test
