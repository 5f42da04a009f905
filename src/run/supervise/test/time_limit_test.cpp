#include "berth/supervise/model/leased_run_step.h"

#include <doctest/doctest.h>

namespace berth::time_limit_test {
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
  CHECK(take_due(job, 2h - 1ms, 4h) == TimeDue::none);
  CHECK(job.time == 2h);
  CHECK(take_due(job, 2h, 4h) == TimeDue::none);
  CHECK(job == JobTime{.time = 4h});
  CHECK(take_due(job, 4h - 5min, 4h) == TimeDue::warn);
  CHECK(take_due(job, 4h - 5min, 4h) == TimeDue::none);
  CHECK(take_due(job, 4h, 4h) == TimeDue::over);
}

TEST_CASE("a time limit that cannot be read stays as it was") {
  JobTime job{.time = 2h};
  CHECK(take_due(job, 2h - 5min, std::nullopt) == TimeDue::warn);
  CHECK(take_due(job, 2h, std::nullopt) == TimeDue::over);
}

}  // namespace
}  // namespace berth::time_limit_test
