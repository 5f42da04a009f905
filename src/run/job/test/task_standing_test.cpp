#include "berth/job/task_standing.h"

#include <doctest/doctest.h>

#include "berth/job/job_codec.h"
#include "berth/job/test/task_events.h"

namespace berth::task_standing_test {
namespace {

using namespace test;

}  // namespace

TEST_CASE("what is let go waits as before, and what was cancelled meanwhile stays so") {
  TaskEvent taken = event(TaskEventKind::taken);
  taken.taker.pid = 12;
  const TaskEvent hold = event(TaskEventKind::held);
  const TaskEvent let_go = event(TaskEventKind::let_go);
  const TaskStanding waits = standing_of(std::vector{taken, hold, let_go}, true);
  CHECK(waits.phase == TaskPhase::waiting);
  CHECK(!waits.on_hold);
  CHECK(waits.taker.pid == 12);
  const TaskEvent cancelled = event(TaskEventKind::cancelled);
  CHECK(standing_of(std::vector{taken, hold, cancelled, let_go}, false).phase == TaskPhase::cancelled);
}

TEST_CASE("a task is named by its job, and by its index where it has one") {
  CHECK(to_text(TaskId{12, {}}) == "12");
  CHECK(to_text(TaskId{12, 7}) == "12.7");
  CHECK(task_id_from_text("12") == TaskId{12, {}});
  CHECK(task_id_from_text("12.0") == TaskId{12, 0});
  for (const char* text : {"", "0", "x", "12.", ".7", "12.x", "-1", "12.7.1", "c2d3e4"})
    CHECK_MESSAGE(!task_id_from_text(text), text);
}

TEST_CASE("what has happened to a task says how it stands") {
  const TaskEvent taken = event(TaskEventKind::taken);
  const TaskEvent started = event(TaskEventKind::started);
  const TaskEvent cancelled = event(TaskEventKind::cancelled);
  CHECK(after({}).phase == TaskPhase::waiting);
  CHECK(!after({}).in_queue);
  CHECK(after({taken}, true).in_queue);
  CHECK(after({taken, started}, true).phase == TaskPhase::running);
  CHECK(after({taken, started, ended(3)}).phase == TaskPhase::ended);
  CHECK(after({taken, started, ended(3)}).exit_status == 3);
  // What it has left behind may have the lock still.
  CHECK(after({taken, started, ended(0)}, true).phase == TaskPhase::ended);
  CHECK(after({cancelled}).phase == TaskPhase::cancelled);
}

TEST_CASE("killed before it was started a task waits, and killed after it is interrupted") {
  CHECK(after({event(TaskEventKind::taken)}).phase == TaskPhase::waiting);
  CHECK(after({event(TaskEventKind::taken), event(TaskEventKind::started)}).phase == TaskPhase::interrupted);
}

TEST_CASE("one that was cancelled before its start never counts as started") {
  const TaskStanding task = after({event(TaskEventKind::cancelled), event(TaskEventKind::started), ended(0)});
  CHECK(task.phase == TaskPhase::cancelled);
  CHECK(task.starts == 0);
}

TEST_CASE("one that was cancelled while it ran is cancelled when it has ended") {
  const TaskEvent started = event(TaskEventKind::started);
  const TaskEvent cancelled = event(TaskEventKind::cancelled);
  CHECK(after({started, cancelled}, true).phase == TaskPhase::running);
  CHECK(after({started, cancelled}, true).asked_to_end);
  CHECK(after({started, cancelled, ended(0)}).phase == TaskPhase::cancelled);
  CHECK(after({started, cancelled}).phase == TaskPhase::cancelled);
  // Too late.
  CHECK(after({started, ended(0), cancelled}).phase == TaskPhase::ended);
}

TEST_CASE("what is to be done again waits as if it were new, and its starts are counted on") {
  const auto task = after({event(TaskEventKind::started), ended(1), event(TaskEventKind::again)});
  CHECK(task.phase == TaskPhase::waiting);
  CHECK(task.starts == 1);
  CHECK(!task.exit_status);
  CHECK(after({event(TaskEventKind::cancelled), event(TaskEventKind::again)}).phase == TaskPhase::waiting);
}

TEST_CASE("one that was cancelled as it ended is not retried") {
  const TaskEvent started = event(TaskEventKind::started);
  const TaskEvent retried = event(TaskEventKind::retried);
  CHECK(after({started, ended(1), retried}).phase == TaskPhase::waiting);
  CHECK(after({started, event(TaskEventKind::cancelled), ended(1), retried}).phase == TaskPhase::cancelled);
  // Between the end and the next start it waits, and is cancelled as what waits is.
  CHECK(after({started, ended(1), retried, event(TaskEventKind::cancelled)}).phase == TaskPhase::cancelled);
}

TEST_CASE("whoever waited for a task gets its status") {
  TaskEvent killed = event(TaskEventKind::ended);
  killed.signal = 9;
  CHECK(exit_status_of(after({event(TaskEventKind::started), ended(7)})) == 7);
  CHECK(exit_status_of(after({event(TaskEventKind::started), killed})) == 137);
  CHECK(exit_status_of(after({event(TaskEventKind::started)})) == 1);
  CHECK(exit_status_of(after({event(TaskEventKind::cancelled)})) == 1);
}

TEST_CASE("a task that is over has left something behind as long as its lock is held") {
  const std::vector<TaskEvent> events{event(TaskEventKind::started), ended(0)};
  CHECK(standing_of(events, true).left_behind);
  CHECK_FALSE(is_gone(standing_of(events, true)));
  CHECK(is_gone(standing_of(events, false)));
}

TEST_CASE("one that was cancelled says why, however it ended") {
  TaskEvent cancelled = event(TaskEventKind::cancelled);
  cancelled.reason = "its tenant has gone";
  const TaskEvent started = event(TaskEventKind::started);
  CHECK(after({cancelled}).reason == cancelled.reason);
  CHECK(after({started, cancelled}).reason == cancelled.reason);
  CHECK(after({started, cancelled, ended(3)}).reason == cancelled.reason);
}

TEST_CASE("a task that has given way waits again") {
  const TaskEvent started = event(TaskEventKind::started);
  const TaskEvent preempted = event(TaskEventKind::preempted);
  CHECK(after({started, ended(143), preempted}).phase == TaskPhase::waiting);
  CHECK(after({started, ended(0), preempted}).phase == TaskPhase::waiting);
  CHECK(after({started, event(TaskEventKind::cancelled), ended(143), preempted}).phase ==
        TaskPhase::cancelled);
}

TEST_CASE("a task that was cut off waits where its job says that it is run again then") {
  TaskEvent started = event(TaskEventKind::started);
  started.rerun = true;
  const TaskEvent cancelled = event(TaskEventKind::cancelled);
  const TaskEvent cut_off = event(TaskEventKind::cut_off);
  CHECK(after({started}, true).phase == TaskPhase::running);
  CHECK(after({started}).phase == TaskPhase::waiting);
  CHECK(after({started, cancelled}).phase == TaskPhase::cancelled);
  CHECK(after({started, ended(1)}).phase == TaskPhase::ended);
  // Whoever has its lock next writes it down, and one that was cancelled meanwhile stays so.
  CHECK(after({started, cut_off}, true).phase == TaskPhase::waiting);
  CHECK(after({started, cancelled, cut_off}).phase == TaskPhase::cancelled);
  CHECK(after({started, cut_off, cancelled}).phase == TaskPhase::cancelled);
  CHECK(after({started, cut_off, started}, true).starts == 2);
}

TEST_CASE("a task has the energy of its last run, and an array that of its tasks that tell it") {
  TaskEvent measured = ended(0);
  measured.figures.energy_mj = 7;
  const auto told = after({event(TaskEventKind::started), measured});
  CHECK(told.figures.energy_mj == 7U);
  CHECK_FALSE(
      after({event(TaskEventKind::started), measured, event(TaskEventKind::again)}).figures.energy_mj);
  CHECK_FALSE(after({event(TaskEventKind::started), measured, event(TaskEventKind::again),
                     event(TaskEventKind::started), ended(0)})
                  .figures.energy_mj);
  const auto silent = after({event(TaskEventKind::started), ended(0)});
  CHECK(standing_of_all(std::vector{told, silent, told}).figures.energy_mj == 14U);
  CHECK_FALSE(standing_of_all(std::vector{silent}).figures.energy_mj);
  auto higher = told;
  higher.figures = {std::nullopt, 9, 50};
  CHECK(standing_of_all(std::vector{higher, told}).figures == RunFigures{7, 9, std::nullopt});
}

TEST_CASE("an array stands as its tasks do") {
  const TaskStanding waits;
  const TaskStanding runs = after({event(TaskEventKind::started)}, true);
  const TaskStanding done = after({event(TaskEventKind::started), ended(0)});
  const TaskStanding failed = after({event(TaskEventKind::started), ended(3)});
  const TaskStanding cut = after({event(TaskEventKind::started)});
  const auto all = [](std::vector<TaskStanding> tasks) { return standing_of_all(tasks); };
  CHECK(all({done, waits, runs}).phase == TaskPhase::running);
  CHECK(all({done, waits}).phase == TaskPhase::waiting);
  CHECK(!all({failed, waits}).exit_status);
  CHECK(all({done, failed, done}).exit_status == 3);
  CHECK(all({done, done}).exit_status == 0);
  CHECK(all({done, cut}).phase == TaskPhase::interrupted);
  CHECK(counts_of(std::vector{waits, runs, done, failed, cut}) ==
        TaskCounts{.waiting = 1, .running = 1, .done = 1, .failed = 1, .cancelled = 0, .interrupted = 1});
}

TEST_CASE("what a ticket says of a job is read back from its note") {
  for (const TaskNote& job : {TaskNote{{12, {}}, "", ""}, TaskNote{{12, 7}, "", "for the paper"},
                              TaskNote{{12, 7}, "a sweep:x", ""}, TaskNote{{1, {}}, "sweep", "a: b"}}) {
    CHECK(task_note_from_text(to_text(job)) == job);
  }
  CHECK(to_text(TaskNote{{12, 7}, "sweep", "for the paper"}) == "job 12.7 sweep: for the paper");
  // A colon and a blank end the name.
  CHECK(to_text(TaskNote{{3, {}}, "lr: :  3", "x"}) == "job 3 lr::3: x");
  for (const std::string_view other : {"", "job", "job ", "job x", "job 0", "job 1.", "jobs 1", "my job 1"})
    CHECK_FALSE(task_note_from_text(other));
}

namespace {

TaskEvent hold() {
  return event(TaskEventKind::held);
}

}  // namespace

TEST_CASE("a held task waits until it is let go, and does not begin meanwhile") {
  CHECK(after({hold()}).on_hold);
  CHECK(after({hold()}).phase == TaskPhase::waiting);
  CHECK(!is_over(after({hold()})));
  CHECK(after({hold(), event(TaskEventKind::started)}, true).phase == TaskPhase::waiting);
  CHECK(after({hold(), event(TaskEventKind::started)}, true).starts == 0);
  const TaskEvent let_go = event(TaskEventKind::let_go);
  for (const TaskEvent& end : {let_go, event(TaskEventKind::again)}) {
    CHECK(!after({hold(), end}).on_hold);
    CHECK(after({hold(), end, event(TaskEventKind::started)}, true).phase == TaskPhase::running);
  }
  // It has been cancelled meanwhile, or is not held: letting go changes nothing of it.
  CHECK(after({hold(), event(TaskEventKind::cancelled), let_go}).phase == TaskPhase::cancelled);
  CHECK(after({event(TaskEventKind::started), let_go}, true).phase == TaskPhase::running);
  TaskEvent put_off = event(TaskEventKind::put_off);
  put_off.reason = "the driver fails";
  CHECK(after({put_off, let_go}).reason == "the driver fails");
  CHECK(after({hold(), event(TaskEventKind::cancelled)}).phase == TaskPhase::cancelled);
  CHECK(!after({hold(), event(TaskEventKind::cancelled)}).on_hold);
  // It has begun meanwhile.
  CHECK(!after({event(TaskEventKind::started), hold()}, true).on_hold);
  CHECK(!after({event(TaskEventKind::started), hold()}, true).asked_to_end);
}

TEST_CASE("a process that came with an earlier request begins nothing") {
  TaskEvent edited = event(TaskEventKind::edited);
  edited.edit = 1;
  CHECK(after({event(TaskEventKind::taken), edited, event(TaskEventKind::started)}, true).phase ==
        TaskPhase::waiting);
  CHECK(after({edited, event(TaskEventKind::taken), event(TaskEventKind::started)}, true).phase ==
        TaskPhase::running);
  // Without a process it waits for one that knows.
  CHECK(may_begin(after({event(TaskEventKind::taken), edited})));
  CHECK(!may_begin(after({event(TaskEventKind::taken), edited}, true)));
  // What runs keeps the request with which it began.
  CHECK(after({event(TaskEventKind::taken), event(TaskEventKind::started), edited}, true).edit == 0);
  CHECK(after({edited, event(TaskEventKind::started), event(TaskEventKind::again)}).edit == 1);
}

TEST_CASE("a task that its process has handed on is nobody's") {
  TaskEvent taken = event(TaskEventKind::taken);
  taken.taker.pid = 12;
  TaskEvent passed = event(TaskEventKind::passed);
  passed.to = TaskId{14, {}};
  TaskEvent given = event(TaskEventKind::taken);
  given.handed_on = true;
  CHECK(after({taken, passed}, true).passes_to == TaskId{14, {}});
  const TaskStanding standing = after({taken, passed, given});
  CHECK(standing.phase == TaskPhase::waiting);
  CHECK(standing.handed_on);
  CHECK(standing.taker.pid == 0);
  CHECK(!standing.passes_to);
  CHECK(!after({taken, passed, given, taken}).handed_on);
}

// Else a cancel would end what has its lock.
TEST_CASE("what has the lock of a task that was handed on is not left of it") {
  const TaskEvent taken = event(TaskEventKind::taken);
  const TaskEvent started = event(TaskEventKind::started);
  const TaskEvent ended = event(TaskEventKind::ended);
  TaskEvent given = event(TaskEventKind::taken);
  given.handed_on = true;
  const TaskEvent retried = event(TaskEventKind::retried);
  const TaskEvent cancelled = event(TaskEventKind::cancelled);
  CHECK(after({taken, started, ended, retried, taken, cancelled}, true).left_behind);
  CHECK(!after({taken, started, ended, retried, taken, given, cancelled}, true).left_behind);
}

}  // namespace berth::task_standing_test
