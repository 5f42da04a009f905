#include "berth/job/run_end.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

namespace berth::run_end_test {
namespace {

RunEnd ended(int status, int signal = 0, EndedBy by = EndedBy::itself) {
  return {.process = {status, signal}, .by = by};
}

/// That has been started once.
TaskStanding running_task() {
  TaskStanding task;
  task.phase = TaskPhase::running;
  task.starts = 1;
  return task;
}

}  // namespace

TEST_CASE(
    "a command has ended badly by itself where it says so or crashes, and not where somebody ended it") {
  struct Row {
    ProcessEnd process;
    Ending noted;
  };
  for (const Row& row : {Row{{0, 0}, Ending::well},
                         Row{{1, 0}, Ending::badly},
                         Row{{125, 0}, Ending::badly},
                         Row{{126, 0}, Ending::by_others},
                         Row{{127, 0}, Ending::by_others},
                         Row{{128, 0}, Ending::badly},
                         Row{{128 + SIGSEGV, 0}, Ending::badly},
                         Row{{128 + SIGABRT, 0}, Ending::badly},
                         Row{{128 + SIGINT, 0}, Ending::by_others},
                         Row{{128 + SIGKILL, 0}, Ending::by_others},
                         Row{{128 + SIGTERM, 0}, Ending::by_others},
                         Row{{128 + SIGSYS + 1, 0}, Ending::badly},
                         Row{{255, 0}, Ending::badly},
                         Row{{0, SIGILL}, Ending::badly},
                         Row{{0, SIGTRAP}, Ending::badly},
                         Row{{0, SIGABRT}, Ending::badly},
                         Row{{0, SIGBUS}, Ending::badly},
                         Row{{0, SIGFPE}, Ending::badly},
                         Row{{0, SIGSEGV}, Ending::badly},
                         Row{{0, SIGSYS}, Ending::badly},
                         Row{{0, SIGINT}, Ending::by_others},
                         Row{{0, SIGKILL}, Ending::by_others},
                         Row{{0, SIGXCPU}, Ending::by_others},
                         Row{{0, SIGSYS + 1}, Ending::by_others}}) {
    CAPTURE(row.process.exit_status);
    CAPTURE(row.process.signal);
    CHECK(noted_as({.process = row.process}) == row.noted);
    for (const EndedBy by : {EndedBy::somebody, EndedBy::time, EndedBy::waiter})
      CHECK(noted_as({.process = row.process, .by = by}) == Ending::by_others);
  }
}

TEST_CASE("a command that has given way is started again if its user wants that, however it ended then") {
  for (const RunEnd& end :
       {ended(0, 0, EndedBy::waiter), ended(3, 0, EndedBy::waiter), ended(0, SIGKILL, EndedBy::waiter)}) {
    CHECK(again(end, {.requeue = true}) == Again::has_given_way);
    CHECK(again(end, {.retries = 1}, running_task()) == Again::no);
  }
}

TEST_CASE("one that has failed is run again while it has tries, and where it failed as its user says") {
  CHECK(again(ended(3), {.retries = 1}, running_task()) == Again::has_failed);
  CHECK(again(ended(3), {.requeue = true}, running_task()) == Again::no);
  CHECK(again(ended(0), {.requeue = true, .retries = 1}, running_task()) == Again::no);
  const std::vector<int> statuses{75, 137};
  CHECK(again(ended(3), {.retries = 1, .statuses = statuses}, running_task()) == Again::no);
  CHECK(again(ended(75), {.retries = 1, .statuses = statuses}, running_task()) == Again::has_failed);
  CHECK(again(ended(0, SIGKILL), {.retries = 1, .statuses = statuses}, running_task()) == Again::has_failed);
}

TEST_CASE("one that fails has as many tries as its user says, and none once that user has cancelled it") {
  const auto runs_again = [](const std::optional<TaskStanding>& now) {
    return again(ended(3), {.retries = 2}, now) == Again::has_failed;
  };
  TaskStanding now = running_task();
  CHECK(runs_again(now));
  now.starts = 2;
  CHECK(runs_again(now));
  now.starts = 3;
  CHECK_FALSE(runs_again(now));
  // A start that others ended is not one of them.
  now.excused_starts = 1;
  CHECK(runs_again(now));
  now.asked_to_end = true;
  CHECK_FALSE(runs_again(now));
  now.asked_to_end = false;
  now.phase = TaskPhase::cancelled;
  CHECK_FALSE(runs_again(now));
  CHECK_FALSE(runs_again(std::nullopt));
}

TEST_CASE("one that somebody has ended, or whose time is over, has not failed by itself: it ends for good") {
  for (const EndedBy by : {EndedBy::somebody, EndedBy::time})
    CHECK(again(ended(0, SIGTERM, by), {.requeue = true, .retries = 1}, running_task()) == Again::no);
}

// A job that is told that its time is over may keep its state, and say so by its status.
TEST_CASE("a status that its user has named counts after its time too, but not after somebody ended it") {
  const std::vector<int> statuses{85};
  const AgainWish wish{.retries = 1, .statuses = statuses};
  CHECK(again(ended(85, 0, EndedBy::time), wish, running_task()) == Again::has_failed);
  CHECK(again(ended(1, 0, EndedBy::time), wish, running_task()) == Again::no);
  CHECK(again(ended(85, 0, EndedBy::time), {.statuses = statuses}, running_task()) == Again::no);
  CHECK(again(ended(85, 0, EndedBy::somebody), wish, running_task()) == Again::no);
}

}  // namespace berth::run_end_test
