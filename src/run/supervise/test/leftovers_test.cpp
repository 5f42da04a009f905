#include "berth/supervise/leased_command.h"

#include <doctest/doctest.h>

#include <vector>

#include "berth/store/test/forked.h"
#include "berth/sys/process.h"

namespace berth::supervise::leftovers_test {
namespace {

bool do_nothing() {
  return true;
}

}  // namespace

TEST_CASE("a process of the job counts although one that is no part of it had its pid before") {
  Leftovers leftovers;
  const Forked job(do_nothing);
  auto another = *sys::unique_processes({job.pid()}).begin();
  --another.start_ticks;
  leftovers.leave_out({another});
  CHECK(sys::pids_of(leftovers.all()) == std::vector{job.pid()});
  leftovers.leave_out(sys::unique_processes({job.pid()}));
  CHECK(leftovers.all().empty());
}

TEST_CASE("what this process had started before the command is no part of the job") {
  const Forked before(do_nothing);
  Leftovers leftovers;
  CHECK(leftovers.all().empty());
  const Forked job(do_nothing);
  CHECK(sys::pids_of(leftovers.all()) == std::vector{job.pid()});
}

}  // namespace berth::supervise::leftovers_test
