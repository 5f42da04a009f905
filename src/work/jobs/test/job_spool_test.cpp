#include "berth/jobs/job_spool.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "berth/command/release.h"
#include "berth/store/test/forked.h"
#include "berth/sys/clock.h"
#include "berth/sys/process.h"

namespace berth::jobs::job_spool_test {
namespace {

/// A spool of its own, without jobs.
class EmptySpool {
 public:
  EmptySpool() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ~EmptySpool() { std::filesystem::remove_all(path_); }
  EmptySpool(const EmptySpool&) = delete;
  EmptySpool& operator=(const EmptySpool&) = delete;

  JobSpool open() const {
    auto spool = JobSpool::open(path_);
    REQUIRE(spool);
    return *std::move(spool);
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "berth-spool-XXXXXX";
};

}  // namespace

TEST_CASE("a process that has the pid of the one that ran a task has left nothing of that task") {
  const EmptySpool folder;
  const JobSpool spool = folder.open();
  const Forked another([] {
    ::prctl(PR_SET_NAME, command::kLeftBehindName);
    const pid_t parent = ::getpid();
    if (::fork() != 0) return true;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // It may have been killed before that call.
    while (::getppid() == parent) ::pause();
    ::_exit(0);
  });
  TaskStanding standing;
  standing.taker = sys::unique_process(another.pid());
  standing.boot = sys::boot_id();
  CHECK(spool.left_of({1, {}}, standing).size() == 1);
  standing.boot = "of before";
  CHECK(spool.left_of({1, {}}, standing).empty());
  standing.boot = sys::boot_id();
  --standing.taker.start_ticks;
  CHECK(spool.left_of({1, {}}, standing).empty());
}

TEST_CASE("whoever rings while the runner ends lives on") {
  const EmptySpool folder;
  const JobSpool spool = folder.open();
  REQUIRE(spool.bell());
  // A signal would end this process: the runner is gone between the open and the write of some.
  std::jthread runner([&folder](const std::stop_token& stop) {
    const JobSpool own = folder.open();
    while (!stop.stop_requested()) (void)own.bell();
  });
  for (int times = 0; times < 20'000; ++times) spool.ring({1, {}});
  CHECK(spool.bell());
}

TEST_CASE("a task that a process has just locked is in the queue, though nothing is written yet") {
  const EmptySpool folder;
  JobSpool spool = folder.open();
  const auto numbers = spool.hold_numbers();
  REQUIRE(numbers);
  Job job;
  job.words = {"true"};
  const auto plain = spool.add(*numbers, job, {}, "");
  job.array = "0-1";
  const auto array = spool.add(*numbers, job, {}, "");
  REQUIRE(plain);
  REQUIRE(array);
  for (const TaskId id : {TaskId{*plain, {}}, TaskId{*array, 1}}) {
    CHECK_FALSE(spool.standing(id).value().in_queue);
    auto lock = spool.hold(id);
    REQUIRE(lock);
    CHECK(spool.standing(id).value().in_queue);
    lock->close();
    CHECK_FALSE(spool.standing(id).value().in_queue);
  }
}

}  // namespace berth::jobs::job_spool_test
