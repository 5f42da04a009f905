#include "berth/job/edit_plan.h"
#include "berth/job/task_standing.h"

#include <doctest/doctest.h>

#include <utility>

namespace berth::edit_plan_test {
namespace {

using Move = EditWish::Move;

TaskStanding stands(TaskPhase phase) {
  TaskStanding standing;
  standing.phase = phase;
  return standing;
}

/// Jobs with the same request, of which the first stands in the queue of the machine.
struct Line {
  explicit Line(std::uint64_t edited, std::size_t count = 4) {
    facts.number = edited;
    facts.standings = {stands(TaskPhase::waiting)};
    for (std::uint64_t number = 1; number <= count; ++number)
      facts.rivals.push_back({.number = number,
                              .position = position_of(number, ""),
                              .can_pass = true,
                              .heir = TaskId{number, {}}});
    facts.rivals.front().in_queue = TaskId{1, {}};
    facts.rivals.front().heir.reset();
    facts.newest = count;
  }
  EditPlan plan(const EditWish& wish) const {
    const auto plan = plan_edit(facts, wish);
    REQUIRE_MESSAGE(plan, plan.error().message);
    return *plan;
  }
  ErrorCode refused(const EditWish& wish) const { return plan_edit(facts, wish).error().code; }

  EditFacts facts;
};

EditPlan::Pass pass(std::optional<std::uint64_t> heir) {
  return {TaskId{1, {}}, heir ? std::optional(TaskId{*heir, {}}) : std::nullopt};
}

}  // namespace

TEST_CASE("a job that is put first takes the place in the queue") {
  const EditPlan plan = Line(3).plan({.move = Move::first});
  CHECK(plan.position < position_of(1, ""));
  CHECK(plan.pass == pass(3));
  CHECK(!plan.leaves_queue);
}

TEST_CASE("a place behind the one in the queue changes nothing there") {
  const EditPlan plan = Line(4).plan({.move = Move::before, .before = 3});
  CHECK(position_of(2, "") < *plan.position);
  CHECK(*plan.position < position_of(3, ""));
  CHECK(!plan.pass);
  CHECK(!Line(4).plan({.move = Move::last}).position);
  CHECK(!Line(1).plan({.move = Move::first}).position);
}

TEST_CASE("the last place is before that of jobs which come later") {
  const EditPlan plan = Line(2).plan({.move = Move::last});
  CHECK(position_of(4, "") < *plan.position);
  CHECK(*plan.position < position_of(5, ""));
}

TEST_CASE("the job in the queue leaves its place to the next that may start") {
  CHECK(Line(1).plan({.move = Move::last}).pass == pass(2));
  CHECK(Line(1).plan({.hold = true}).pass == pass(2));
  Line line(1);
  line.facts.rivals[1].on_hold = true;
  CHECK(line.plan({.hold = true}).pass == pass(3));
  line.facts.rivals[2].heir.reset();
  CHECK(line.plan({.hold = true}).pass == pass(4));
}

TEST_CASE("what has a place to give takes it back when its job is first again") {
  Line line(1);
  line.facts.rivals[0].on_hold = true;
  line.facts.rivals[0].passes_to = TaskId{2, {}};
  CHECK(line.plan({.hold = false}).pass == pass({}));
  line.facts.number = 2;
  CHECK(line.plan({.hold = true}).pass == pass(3));
}

TEST_CASE("a place in the queue is given up only if the user knows") {
  const Line alone(1, 1);
  CHECK(alone.refused({.hold = true}) == ErrorCode::failure);
  CHECK(alone.plan({.hold = true, .yes = true}).leaves_queue);
  const Line line(1);
  CHECK(line.refused({.new_request = true}) == ErrorCode::failure);
  CHECK(line.plan({.new_request = true, .yes = true}).leaves_queue);
  // It has none.
  CHECK(!Line(2).plan({.new_request = true}).leaves_queue);
  CHECK(!Line(2).plan({.hold = true}).leaves_queue);
}

TEST_CASE("a job that is held keeps no place that no other job takes") {
  Line line(2, 2);
  line.facts.rivals[0].passes_to = TaskId{2, {}};
  line.facts.rivals[0].on_hold = true;
  CHECK(line.refused({.hold = true}) == ErrorCode::failure);
  const EditPlan held = line.plan({.hold = true, .yes = true});
  CHECK(held.leaves_queue == TaskId{1, {}});
  CHECK(held.pass == pass({}));
  // The heir was cancelled: it is no rival any more.
  line.facts.number = 1;
  line.facts.rivals.pop_back();
  CHECK(line.plan({.yes = true}).leaves_queue == TaskId{1, {}});
}

TEST_CASE("a place that a held job gave to one that is then cancelled goes on to the next") {
  Line line(1, 3);
  line.facts.rivals[0].passes_to = TaskId{2, {}};
  line.facts.rivals[0].on_hold = true;
  // What was cancelled is no rival any more.
  line.facts.rivals.erase(line.facts.rivals.begin() + 1);
  const EditPlan plan = line.plan({.yes = true});
  CHECK(plan.pass == pass(3));
  CHECK(!plan.leaves_queue);
}

TEST_CASE("a place is among jobs with the same request, so it comes after the request") {
  CHECK(Line(2).refused({.move = Move::first, .new_request = true}) == ErrorCode::usage);
}

TEST_CASE("a job that another request awaits takes no place with the one of before") {
  Line line(2);
  line.facts.rivals[0].passes_to = TaskId{2, {}};
  line.facts.rivals[0].on_hold = true;
  CHECK(line.plan({.new_request = true}).pass == pass(3));
}

TEST_CASE("a process that may not run what it did not come for stays what it is") {
  Line line(3);
  line.facts.rivals[0].can_pass = false;
  const EditPlan plan = line.plan({.move = Move::first});
  CHECK(plan.position);
  CHECK(!plan.pass);
  CHECK(plan.told.find("job 1, which has joined the queue of the machine, starts before it") !=
        std::string::npos);
}

TEST_CASE("where no process stands in the queue, one that was just started may come by the old order") {
  Line line(3);
  CHECK(!line.plan({.move = Move::first}).awaits_process);
  line.facts.rivals.front().in_queue.reset();
  line.facts.rivals.front().heir = TaskId{1, {}};
  CHECK(line.plan({.move = Move::first}).awaits_process);
  // None is sent for a job that is held, that comes after others, or that could not join just now.
  for (RivalJob& rival : line.facts.rivals) rival.on_hold = rival.number != 1;
  line.facts.rivals.front().is_put_off = true;
  CHECK(!line.plan({.yes = true}).awaits_process);
  line.facts.rivals.front().is_put_off = false;
  CHECK(line.plan({.yes = true}).awaits_process);
  line.facts.rivals.front().heir.reset();
  CHECK(!line.plan({.yes = true}).awaits_process);
}

TEST_CASE("what does not wait is not edited") {
  Line line(2);
  line.facts.standings = {stands(TaskPhase::running)};
  CHECK(line.refused({.hold = true}) == ErrorCode::failure);
  CHECK(plan_edit(line.facts, {.hold = true}).error().message.find("`berth extend`") != std::string::npos);
  line.facts.standings = {stands(TaskPhase::cancelled)};
  CHECK(line.refused({.hold = true}) == ErrorCode::failure);
  line.facts.index = 3;
  CHECK(line.refused({.hold = true}) == ErrorCode::usage);
  CHECK(Line(2).refused({.move = Move::before, .before = 2}) == ErrorCode::usage);
  CHECK(Line(2).refused({.move = Move::before, .before = 9}) == ErrorCode::usage);
}

TEST_CASE("only what nothing else keeps from its start takes a place") {
  CHECK(may_run_instead(Job{}));
  Job job;
  job.after_fail = {1};
  CHECK(!may_run_instead(job));
  job = {};
  job.tenant = 3;
  CHECK(!may_run_instead(job));
  job = {};
  job.not_before_s = 7;
  CHECK(!may_run_instead(job));
  job = {};
  job.tty = true;
  CHECK(!may_run_instead(job));
  job = {};
  job.request.request.promise_bytes = kMemoryByRuns;
  CHECK(!may_run_instead(job));
}

}  // namespace berth::edit_plan_test
