#include "berth/supervise/leftovers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include <doctest/doctest.h>

namespace berth::supervise::leftovers_test {
namespace {

class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("a process of the job counts although one that is no part of it had its pid before") {
  Leftovers leftovers;
  const Sleeper job;
  auto another = *sys::unique_processes({job.pid()}).begin();
  --another.second;
  leftovers.leave_out({another});
  CHECK(leftovers.all() == std::vector{job.pid()});
  leftovers.leave_out(sys::unique_processes({job.pid()}));
  CHECK(leftovers.all().empty());
}

TEST_CASE("what this process had started before the command is no part of the job") {
  const Sleeper before;
  Leftovers leftovers;
  CHECK(leftovers.all().empty());
  const Sleeper job;
  CHECK(leftovers.all() == std::vector{job.pid()});
}

}  // namespace berth::supervise::leftovers_test
