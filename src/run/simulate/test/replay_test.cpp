#include "berth/simulate/replay.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "property.h"

namespace berth::replay_test {
namespace {

constexpr Moment kHour = 3600;
constexpr Moment kArrived = 1'700'000'000;

WorkloadJob job(Moment arrival, unsigned devices, Moment duration, std::optional<Moment> length = {}) {
  return {kArrived + arrival, devices, duration, length, "ann"};
}

/// When each starts, after the first arrival.
std::vector<Moment> starts_of(const Workload& workload, const QueueRules& rules = {}) {
  std::vector<Moment> starts;
  for (const Grant& grant : replay(workload, rules).grants) starts.push_back(grant.at - kArrived);
  return starts;
}

using Starts = std::vector<Moment>;

TEST_CASE("a small job fills the hole before a large one, if it says that it fits") {
  const Workload workload{2, {job(0, 1, 100, 100), job(1, 2, 50, 50), job(2, 1, 90, 98), job(3, 1, 90)}};
  CHECK(starts_of(workload) == Starts{0, 100, 2, 150});
  CHECK(starts_of(workload, {.backfill = false}) == Starts{0, 100, 150, 150});
  CHECK(starts_of(workload, {.assumed_s = 90}) == Starts{0, 100, 2, 150});
}

TEST_CASE("by the fair order the job of one who has fewer starts first") {
  Workload workload{2, {job(0, 2, 100), job(1, 1, 50), job(2, 1, 50), job(3, 1, 50), job(4, 1, 50)}};
  workload.jobs[3].user = workload.jobs[4].user = "bob";
  CHECK(starts_of(workload) == Starts{0, 100, 100, 150, 150});
  CHECK(starts_of(workload, {.order = QueueOrder::fair}) == Starts{0, 100, 150, 100, 150});
  CHECK(starts_of(workload, {.backfill = false, .order = QueueOrder::fair}) == Starts{0, 100, 150, 100, 150});
}

TEST_CASE(
    "by its response ratio the short job starts first, and the long one once it has waited long enough") {
  const Workload workload{
      1, {job(0, 1, 1000, 1000), job(10, 1, 9 * kHour, 9 * kHour), job(600, 1, 700, 700), job(700, 1, 9)}};
  CHECK(starts_of(workload) == Starts{0, 1000, 1000 + 9 * kHour, 1700 + 9 * kHour});
  // 400 s of 700 are more than 990 s of nine hours. The last says nothing: it counts as six hours.
  CHECK(starts_of(workload, {.expect = Expect::limits}) == Starts{0, 1700, 1000, 1700 + 9 * kHour});
  CHECK(starts_of(workload, {.expect = Expect::limits, .longest_wait_s = 990}) ==
        Starts{0, 1000, 1000 + 9 * kHour, 1700 + 9 * kHour});
}

TEST_CASE("earlier runs of a user's program say how long the next is expected to last, once they are over") {
  Workload workload{1, {job(0, 1, 1000), job(2000, 1, 1000), job(2001, 1, 9 * kHour), job(2002, 1, 1000)}};
  for (const std::size_t same : {0U, 3U}) workload.jobs[same].program = "eval.py";
  CHECK(starts_of(workload, {.expect = Expect::limits}) == Starts{0, 2000, 3000, 3000 + 9 * kHour});
  CHECK(starts_of(workload, {.expect = Expect::runs}) == Starts{0, 2000, 4000, 3000});
  workload.jobs[0].user = "bob";
  CHECK(starts_of(workload, {.expect = Expect::runs}) == Starts{0, 2000, 3000, 3000 + 9 * kHour});
  workload.jobs[0].user = "ann";
  // It is not over yet.
  workload.jobs[0].arrival += 1500;
  CHECK(starts_of(workload, {.expect = Expect::runs}) == Starts{1500, 2500, 3500, 3500 + 9 * kHour});
}

TEST_CASE("what earlier runs took is kept for a job, and the gap before it is filled by what fits") {
  // The first has run for 100 s twice, so it is expected to end after 300 s, and not after an hour:
  // the third, which takes no longer than its own earlier run, fits before the second, which wants
  // both.
  Workload workload{
      2, {job(0, 1, 100), job(200, 1, 100), job(400, 1, 200), job(401, 2, 10, 10), job(402, 1, 20)}};
  for (const std::size_t same : {0U, 1U, 2U}) workload.jobs[same].program = "train.py";
  workload.jobs[4].length = 60;
  CHECK(starts_of(workload, {.expect = Expect::runs}) == Starts{0, 200, 400, 600, 402});
  workload.jobs[4].length = 400;
  CHECK(starts_of(workload, {.expect = Expect::runs}) == Starts{0, 200, 400, 600, 610});
  CHECK(starts_of(workload) == Starts{0, 200, 400, 600, 402});
}

TEST_CASE("a job is ended at the time that it says") {
  const Workload workload{1, {job(0, 1, 100, 60), job(0, 1, 10)}};
  CHECK(starts_of(workload) == Starts{0, 60});
  CHECK(replay(workload, {}).until == kArrived + 70);
}

TEST_CASE("a reservation that slips because somebody goes on opens its hole when that is seen") {
  // The first is taken to last an hour. From then on it is expected to last four in all, so that
  // the third fits before the second, although nothing has come and nothing has ended.
  const Workload workload{2, {job(0, 1, 10 * kHour), job(1, 2, 10), job(2, 1, 2 * kHour, 2 * kHour)}};
  CHECK(starts_of(workload) == Starts{0, 10 * kHour, kHour});
}

TEST_CASE("a job that goes on past what was assumed opens a gap when the job that waits fits into it") {
  // Of two devices one is taken for 100 s. From second 10 on it is expected to go on for three
  // times as long as it has lasted. The second job wants both, and the third says 60 s: it fits
  // once the first has lasted 20 s.
  const Workload workload{2, {job(0, 1, 100), job(1, 2, 10, 10), job(2, 1, 60, 60)}};
  CHECK(starts_of(workload, {.assumed_s = 10}) == Starts{0, 100, 20});
}

TEST_CASE("who waited how long, by size and by user, and what stood idle meanwhile") {
  Workload workload{2, {job(0, 1, 100, 100), job(0, 2, 100, 100), job(0, 1, 100, 100)}};
  workload.jobs[2].user = "bob";
  const Replay filled = replay(workload, {});
  const Replay in_order = replay(workload, {.backfill = false});
  CHECK(waits_of(all_jobs(workload), workload, filled) == WaitTimes{3, 100 / 3.0, 0, 100, 100});
  CHECK(waits_of(jobs_by_size(workload).at(1), workload, in_order) == WaitTimes{2, 100, 0, 200, 200});
  CHECK(waits_of({}, workload, filled) == WaitTimes{});
  CHECK(jobs_by_user(workload) == std::map<std::string, JobIndices>{{"ann", {0, 1}}, {"bob", {2}}});
  CHECK(shift_of(jobs_by_user(workload).at("bob"), in_order, filled) == Shift{1, 0});
  CHECK(shift_of(all_jobs(workload), filled, in_order) == Shift{0, 1});
  CHECK(idle_share(workload, filled) == 0);
  CHECK(idle_share(workload, in_order) == doctest::Approx(1 / 6.0));
  CHECK(used_share(workload, filled) == 1);
}

TEST_CASE("nobody comes") {
  const Replay nothing = replay({4, {}}, {});
  CHECK(nothing.grants.empty());
  CHECK(idle_share({4, {}}, nothing) == 0);
}

TEST_CASE("of a hundred the 99th percentile is the second longest") {
  Workload workload{200, {}};
  Replay made;
  for (Moment wait = 1; wait <= 100; ++wait) {
    workload.jobs.push_back(job(0, 1, 1));
    made.grants.push_back({kArrived + wait, {}});
  }
  CHECK(waits_of(all_jobs(workload), workload, made) == WaitTimes{100, 50.5, 50, 99, 100});
}

TEST_CASE("the clock goes on while a job runs for longer than its earlier runs let expect") {
  Workload workload{2, {job(0, 1, 100), job(200, 1, 2 * kHour), job(300, 2, kHour)}};
  for (const std::size_t same : {0U, 1U}) workload.jobs[same].program = "train.py";
  CHECK(starts_of(workload, {.expect = Expect::runs}) == Starts{0, 200, 200 + 2 * kHour});
}

// Any workload.

/// `longest`: of runs; those of less than a minute say nothing of later ones.
Workload any_workload(Moment longest = 60) {
  Workload workload{*rc::gen::inRange<std::size_t>(1, 5), {}};
  const auto count = *rc::gen::inRange(0, 12);
  Moment arrival = 0;
  for (int at = 0; at < count; ++at) {
    arrival += *rc::gen::inRange<Moment>(0, 30);
    const auto devices = *rc::gen::inRange(1U, static_cast<unsigned>(workload.devices) + 1);
    WorkloadJob one = job(arrival, devices, *rc::gen::inRange<Moment>(1, longest));
    if (*rc::gen::arbitrary<bool>()) one.length = *rc::gen::inRange<Moment>(1, 120);
    one.user = *rc::gen::element("ann", "bob");
    one.program = *rc::gen::element("", "train.py", "eval.py");
    workload.jobs.push_back(one);
  }
  return workload;
}

/// The same second by second: everybody looks all the time.
std::vector<Grant> second_by_second(const Workload& workload, const QueueRules& rules) {
  std::vector<Grant> grants(workload.jobs.size());
  const auto missing = [](const Grant& grant) { return grant.at == kNever; };
  for (Moment now = kArrived; std::ranges::any_of(grants, missing); ++now) {
    QueueState queue{.now = now, .room_bytes = std::vector<std::uint64_t>(workload.devices, 1)};
    queue.sets.emplace_back(workload.devices);
    std::iota(queue.sets[0].begin(), queue.sets[0].end(), 0);
    for (std::size_t at = 0; at < grants.size(); ++at) {
      const WorkloadJob& one = workload.jobs[at];
      if (missing(grants[at]) && one.arrival <= now)
        queue.wishes.push_back({.id = {at}, .count = one.devices, .length = one.length});
      if (missing(grants[at]) || grants[at].at + takes(one) <= now) continue;
      for (const std::size_t device : grants[at].devices)
        queue.holds.push_back({device, 0, expected_end(grants[at].at, one.length, now, rules)});
    }
    const std::vector<Assignment> assignments = schedule(queue, rules);
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      if (const auto* start = std::get_if<StartsNow>(&assignments[at]))
        grants[queue.wishes[at].id.value] = {now, start->devices};
    }
  }
  return grants;
}

TEST_CASE("it grants what a line grants that is looked at every second") {
  holds_for_any([] {
    const Workload workload = any_workload();
    // Of some that take longer than is assumed, what is expected slips from second to second.
    const QueueRules rules{.assumed_s = *rc::gen::inRange<Moment>(1, 100),
                           .backfill = *rc::gen::arbitrary<bool>()};
    RC_ASSERT(replay(workload, rules).grants == second_by_second(workload, rules));
  });
}

TEST_CASE("of jobs that ask for the same, those that come last change nothing for the others") {
  holds_for_any([] {
    Workload workload = any_workload(400);
    for (int more = *rc::gen::inRange(0, 30); more > 0; --more) {
      WorkloadJob alike = job(0, 1, *rc::gen::element<Moment>(10, 100, 300));
      alike.length = *rc::gen::element<std::optional<Moment>>(std::nullopt, 60, 300);
      alike.devices = *rc::gen::inRange(1U, static_cast<unsigned>(workload.devices) + 1);
      workload.jobs.insert(workload.jobs.begin(), alike);
    }
    const QueueRules rules{.assumed_s = *rc::gen::inRange<Moment>(1, 200),
                           .order = *rc::gen::element(QueueOrder::fifo, QueueOrder::fair),
                           .expect = *rc::gen::element(Expect::none, Expect::limits, Expect::runs)};
    const auto sees_all = [&](const QueueState& queue) { return schedule(queue, rules); };
    RC_ASSERT(replay(workload, rules).grants == replay_with(sees_all, workload, rules).grants);
  });
}

/// First come, first served, without a schedule: each starts as soon as all before it have and
/// enough is free.
std::vector<Moment> in_order_of_arrival(const Workload& workload) {
  std::vector<Moment> free_from(workload.devices, 0);
  std::vector<Moment> starts;
  Moment last = 0;
  for (const WorkloadJob& one : workload.jobs) {
    std::ranges::sort(free_from);
    last = std::max({last, one.arrival, free_from[one.devices - 1]});
    for (unsigned device = 0; device < one.devices; ++device) free_from[device] = last + takes(one);
    starts.push_back(last);
  }
  return starts;
}

TEST_CASE("without backfill it is first come, first served") {
  holds_for_any([] {
    const Workload workload = any_workload();
    std::vector<Moment> starts;
    for (const Grant& grant : replay(workload, {.assumed_s = 40, .backfill = false}).grants)
      starts.push_back(grant.at);
    RC_ASSERT(starts == in_order_of_arrival(workload));
  });
}

TEST_CASE("nobody starts before it comes, and no device is two jobs' at a time") {
  holds_for_any([] {
    const Workload workload = any_workload(400);
    const Replay made = replay(workload, {.assumed_s = *rc::gen::inRange<Moment>(1, 200),
                                          .expect = *rc::gen::element(Expect::none, Expect::runs)});
    std::vector<Hold> holds;
    for (std::size_t at = 0; at < workload.jobs.size(); ++at) {
      const WorkloadJob& one = workload.jobs[at];
      const Grant& grant = made.grants[at];
      RC_ASSERT(grant.at >= one.arrival);
      RC_ASSERT(grant.devices.size() == one.devices);
      for (const std::size_t device : grant.devices) {
        RC_ASSERT(device < workload.devices);
        for (const Hold& other : holds) {
          RC_ASSERT(other.device != device || other.until <= grant.at || grant.at + takes(one) <= other.from);
        }
        holds.push_back({device, grant.at, grant.at + takes(one)});
      }
    }
  });
}

TEST_CASE("no job of one size waits longer for what others ask after it") {
  holds_for_any([] {
    Workload workload = any_workload();
    for (WorkloadJob& one : workload.jobs) one.devices = 1;
    const std::vector<Grant> all = replay(workload, {}).grants;
    if (workload.jobs.empty()) return;
    workload.jobs.pop_back();
    const std::vector<Grant> fewer = replay(workload, {}).grants;
    RC_ASSERT(std::ranges::equal(fewer, std::span(all).first(fewer.size())));
  });
}

}  // namespace
}  // namespace berth::replay_test
