#include "berth/job/retry.h"

#include <doctest/doctest.h>

#include "berth/job/task_standing.h"
#include "berth/job/test/task_events.h"

namespace berth::retry_test {

using namespace test;

TEST_CASE("a task that has failed is run again as often as its job says, and where it failed as it says") {
  Job job;
  job.retries = 1;
  const TaskEvent started = event(TaskEventKind::started);
  CHECK(is_to_be_retried(job, after({started, ended(3)})));
  CHECK(!is_to_be_retried(job, after({started, ended(0)})));
  CHECK(!is_to_be_retried(job, after({started, ended(3), event(TaskEventKind::again), started, ended(3)})));
  CHECK(!is_to_be_retried(job, after({started})));
  CHECK(!is_to_be_retried(job, after({ended(69)})));
  CHECK(!is_to_be_retried(job, after({started, event(TaskEventKind::cancelled), ended(3)})));
  job.retry_on = {75, 137};
  CHECK(!is_to_be_retried(job, after({started, ended(3)})));
  CHECK(is_to_be_retried(job, after({started, ended(75)})));
  TaskEvent killed = event(TaskEventKind::ended);
  killed.signal = 9;
  CHECK(is_to_be_retried(job, after({started, killed})));
}

TEST_CASE("a start that others ended counts as no try") {
  Job job;
  job.retries = 1;
  const TaskEvent started = event(TaskEventKind::started);
  const TaskEvent preempted = event(TaskEventKind::preempted);
  const TaskEvent cut_off = event(TaskEventKind::cut_off);
  CHECK(is_to_be_retried(job, after({started, ended(143), preempted, started, ended(3)})));
  CHECK(!is_to_be_retried(job, after({started, ended(143), preempted, started, ended(3),
                                      event(TaskEventKind::retried), started, ended(3)})));
  CHECK(is_to_be_retried(job, after({started, cut_off, started, ended(3)})));
  CHECK(!has_failed(after({started, ended(143), preempted})));
  CHECK(!has_failed(after({started, cut_off})));
  CHECK(has_failed(after({started, cut_off, started, ended(3), event(TaskEventKind::retried)})));
}

}  // namespace berth::retry_test
