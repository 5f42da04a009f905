#include "berth/usage/usage.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/queue/test/any_order.h"
#include "property.h"

namespace berth::past_leases_test {
namespace {

constexpr std::int64_t kBegan = 1'700'000'000;  // the span

/// Times are from the begin of the span on.
RecordedLease lease(std::int64_t joined, std::int64_t begun, std::optional<std::int64_t> ended,
                    std::vector<std::size_t> devices, std::optional<std::int64_t> time_s = {}) {
  RecordedLease made{{static_cast<std::uint64_t>(kBegan + joined)},
                     "ann",
                     kBegan + begun,
                     {},
                     std::move(devices),
                     RecordedWish{.joined_s = kBegan + joined, .time_s = time_s}};
  if (ended) made.ended_s = kBegan + *ended;
  return made;
}

RecordedLeases on_two(std::vector<RecordedLease> leases) {
  return {kBegan, kBegan + 1000, false, {"gpu0", "gpu1"}, std::move(leases)};
}

WorkloadJob job(Moment arrival, unsigned devices, Moment duration, std::optional<Moment> length = {}) {
  return {kBegan + arrival, devices, duration, length, "ann"};
}

TEST_CASE("a lease is a job that came when it was asked for, and took as long as the lease lasted") {
  const auto made = recorded_workload(on_two({lease(10, 10, 110, {0}), lease(20, 110, 160, {0, 1}, 90)}));
  CHECK(made.workload.devices == 2);
  CHECK(made.workload.jobs == std::vector<WorkloadJob>{job(10, 1, 100), job(20, 2, 50, 90)});
  CHECK(made.recorded.grants == std::vector<Grant>{{kBegan + 10, {0}}, {kBegan + 110, {0, 1}}});
  CHECK(made.recorded.from == kBegan + 10);
  CHECK(made.recorded.until == kBegan + 160);
  CHECK(made.recorded.idle_s == 90);
  CHECK(made.left_out.empty());
}

TEST_CASE("an end that was seen late was at the latest when the next lease began on a device of it") {
  const auto made =
      recorded_workload(on_two({lease(0, 0, 105, {0, 1}), lease(1, 100, 200, {1}), lease(3, 200, 200, {1}),
                                lease(2, 200, 210, {1}), lease(4, 300, {}, {0})}));
  CHECK(made.workload.jobs == std::vector<WorkloadJob>{job(0, 2, 100), job(1, 1, 100), job(2, 1, 10),
                                                       job(3, 1, 1), job(4, 1, 700)});
}

TEST_CASE("what a job took beyond its time is part of its time, since nobody had its GPUs meanwhile") {
  const auto made = recorded_workload(on_two({lease(0, 0, 70, {0}, 60)}));
  CHECK(made.workload.jobs == std::vector<WorkloadJob>{job(0, 1, 70, 70)});
}

TEST_CASE("of what was there when the span began nobody knows for whom it waited") {
  const auto made = recorded_workload(on_two(
      {lease(-90, -50, 20, {0}), lease(-40, -30, 10, {1}), lease(-20, 20, 30, {0}), lease(5, 5, 9, {1})}));
  CHECK(made.workload.jobs ==
        std::vector<WorkloadJob>{job(-50, 1, 70), job(-30, 1, 35), job(0, 1, 10), job(5, 1, 4)});
}

TEST_CASE("what is no job of whole GPUs that somebody waited for is left out, and counted") {
  RecordedLease unknown = lease(0, 0, 10, {0});
  unknown.wish.reset();
  RecordedLease share = lease(1, 1, 10, {0});
  share.wish->whole = false;
  RecordedLease yielding = lease(2, 2, 10, {0});
  yielding.wish->yields = true;
  const auto recorded =
      on_two({unknown, share, share, yielding, lease(3, 3, 10, {0, 1}), lease(4, 10, 20, {1})});
  const auto made = recorded_workload(recorded, 1);
  CHECK(made.workload.devices == 1);
  CHECK(made.workload.jobs == std::vector<WorkloadJob>{job(4, 1, 10)});
  REQUIRE(made.left_out.size() == 4);
  CHECK(made.left_out[0].leases == 1);
  CHECK(made.left_out[1] == LeftOut{"they were for a share of a GPU's memory", 2});
  CHECK(made.left_out[2].leases == 1);
  CHECK(made.left_out[3] == LeftOut{"they had more GPUs than there are", 1});
}

TEST_CASE("nothing was leased") {
  const auto made = recorded_workload({kBegan, kBegan, {}, {}});
  CHECK(made.workload.jobs.empty());
  CHECK(made.recorded.idle_s == 0);
}

// Any workload.

Workload any_jobs() {
  Workload workload{*rc::gen::inRange<std::size_t>(1, 5), {}};
  const auto count = *rc::gen::inRange(1, 14);
  Moment arrival = kBegan;
  for (int at = 0; at < count; ++at) {
    arrival += *rc::gen::inRange<Moment>(0, 30);
    const auto devices = *rc::gen::inRange(1U, static_cast<unsigned>(workload.devices) + 1);
    WorkloadJob one{.arrival = arrival, .devices = devices, .duration = *rc::gen::inRange<Moment>(1, 60)};
    if (*rc::gen::arbitrary<bool>()) one.length = *rc::gen::inRange<Moment>(1, 120);
    one.user = *rc::gen::element("ann", "bob", "carol");
    workload.jobs.push_back(one);
  }
  return workload;
}

/// As the agent would have seen it.
RecordedLeases records_of(const Workload& workload, const Replay& replay) {
  RecordedLeases recorded{kBegan, replay.until, {}, {}};
  for (std::size_t device = 0; device < workload.devices; ++device)
    recorded.devices.push_back("gpu" + std::to_string(device));
  for (std::size_t at = 0; at < workload.jobs.size(); ++at) {
    const WorkloadJob& one = workload.jobs[at];
    const Grant& grant = replay.grants[at];
    recorded.leases.push_back({.id = {at + 1},
                               .user = one.user,
                               .begun_s = grant.at,
                               .ended_s = grant.at + takes(one),
                               .devices = grant.devices,
                               .wish = RecordedWish{.joined_s = one.arrival, .time_s = one.length}});
  }
  return recorded;
}

TEST_CASE("a record replayed under the rules that held gives the grants that it recorded") {
  holds_for_any([] {
    const Workload workload = any_jobs();
    const QueueRules rules{.assumed_s = *rc::gen::inRange<Moment>(1, 200),
                           .backfill = *rc::gen::arbitrary<bool>(),
                           .order = test::any_order()};
    const Replay happened = replay(workload, rules);
    const RecordedWorkload made = recorded_workload(records_of(workload, happened));
    RC_ASSERT(made.recorded.grants == happened.grants);
    RC_ASSERT(made.recorded.idle_s == happened.idle_s);
    RC_ASSERT(made.recorded.until == happened.until);
    RC_ASSERT(replay(made.workload, rules).grants == happened.grants);
  });
}

}  // namespace
}  // namespace berth::past_leases_test
