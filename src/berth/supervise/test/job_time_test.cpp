#include "berth/supervise/model/job_time.h"

#include <doctest/doctest.h>

namespace berth::job_time_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a user is warned a tenth of the time before its end, and five minutes before at most") {
  CHECK(warning_before(1s) == 100ms);
  CHECK(warning_before(10min) == 1min);
  CHECK(warning_before(50min) == 5min);
  CHECK(warning_before(51min) == 5min);
  CHECK(warning_before(24h * 365) == 5min);
}

TEST_CASE("a job is warned and its time is over, each when it is due") {
  JobTime job{.time = 2h};
  CHECK(next_due(job) == 2h - 5min);
  CHECK(due(job, 2h - 5min - 1ms) == TimeDue::none);
  CHECK(due(job, 2h - 5min) == TimeDue::warn);
  CHECK(due(job, 2h - 1ms) == TimeDue::warn);
  job.warned = true;
  CHECK(next_due(job) == 2h);
  CHECK(due(job, 2h - 1ms) == TimeDue::none);
  CHECK(due(job, 2h) == TimeDue::over);
}

TEST_CASE("the time of one that slept over the warning is over at once") {
  CHECK(due({.time = 2h}, 3h) == TimeDue::over);
}

TEST_CASE("an extension begins anew: warning and end come later") {
  JobTime job{.time = 2h, .warned = true};
  job.time = 4h;
  job.warned = false;
  CHECK(due(job, 2h) == TimeDue::none);
  CHECK(due(job, 4h - 5min) == TimeDue::warn);
}

}  // namespace
}  // namespace berth::job_time_test
