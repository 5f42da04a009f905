#include "placement.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "berth/lab_queue/model/lab_tickets.h"

namespace berth::placement_test {
namespace {

WorkloadJob job(Moment arrival, unsigned devices, Moment duration, std::optional<Moment> length = {}) {
  return {arrival, devices, duration, length, "ann"};
}

using Starts = std::vector<Moment>;

Starts starts_of(Placement placement, const Workload& workload, std::size_t hosts,
                 const QueueRules& rules = {}) {
  Starts starts;
  for (const Grant& grant : replay_placed(placement, workload, hosts, rules).grants)
    starts.push_back(grant.at);
  return starts;
}

TEST_CASE("a job has devices of one host, and small jobs fill a host before the next") {
  for (const Placement placement : kPlacements) {
    CAPTURE(to_text(placement));
    // Four of six are free in all, and three of them on one host.
    const Workload workload{6, {job(0, 1, 100, 100), job(1, 1, 100, 100), job(2, 3, 10, 10)}};
    CHECK(starts_of(placement, workload, 2) == Starts{0, 1, 2});
    // Four are free in all, and two on each host.
    const Workload wide{6, {job(0, 2, 100, 100), job(1, 2, 100, 100), job(2, 2, 10, 10)}};
    CHECK(starts_of(placement, wide, 2) == Starts{0, 1, 100});
  }
}

TEST_CASE("a job that is enough for itself does not wait behind many that ask for more than is free") {
  Workload workload{4, {job(0, 1, 1000, 1000), job(0, 1, 1000, 1000), job(0, 1, 1000, 1000)}};
  for (std::size_t i = 0; i < 2 * kLabWindow; ++i) workload.jobs.push_back(job(1, 2, 10, 10));
  workload.jobs.push_back(job(2, 1, 10, 10));
  for (const Placement placement : kPlacements) {
    CAPTURE(to_text(placement));
    CHECK(starts_of(placement, workload, 2).back() == 2);
  }
}

TEST_CASE("without backfill nobody starts in front of another in one queue") {
  const Workload workload{4, {job(0, 1, 100, 100), job(1, 2, 50, 50), job(1, 2, 50, 50), job(2, 1, 5, 5)}};
  const QueueRules strict{.backfill = false};
  CHECK(starts_of(Placement::one_queue, workload, 2, strict) == Starts{0, 1, 51, 51});
  CHECK(starts_of(Placement::one_queue, workload, 2) == Starts{0, 1, 51, 2});
}

TEST_CASE("each job runs once, on one host, on devices that nobody else has, and not before it came") {
  CHECK(rc::check([](const std::vector<std::uint32_t>& numbers, bool backfill) {
    constexpr std::size_t kHosts = 3, kEach = 4;
    Workload workload{kHosts * kEach, {}};
    for (const std::uint32_t number : numbers) {
      const auto duration = static_cast<Moment>(1 + number / 64 % 50);
      const std::optional<Moment> length =
          number % 3 == 0 ? std::nullopt : std::optional<Moment>(duration + number % 7);
      workload.jobs.push_back(
          job(static_cast<Moment>(number / 4 % 64), 1 + number % kEach, duration, length));
    }
    std::ranges::stable_sort(workload.jobs, {}, &WorkloadJob::arrival);
    for (const Placement placement : kPlacements) {
      const Replay replay = replay_placed(placement, workload, kHosts, {.backfill = backfill});
      RC_ASSERT(replay.grants.size() == workload.jobs.size());
      for (std::size_t i = 0; i < replay.grants.size(); ++i) {
        const Grant& grant = replay.grants[i];
        RC_ASSERT(grant.at >= workload.jobs[i].arrival);
        RC_ASSERT(grant.devices.size() == workload.jobs[i].devices);
        for (const std::size_t device : grant.devices) RC_ASSERT(device / kEach == grant.devices[0] / kEach);
        for (std::size_t k = 0; k < i; ++k) {
          const Grant& other = replay.grants[k];
          if (grant.at >= other.at + takes(workload.jobs[k]) ||
              other.at >= grant.at + takes(workload.jobs[i]))
            continue;
          RC_ASSERT(std::ranges::find_first_of(grant.devices, other.devices) == grant.devices.end());
        }
      }
    }
  }));
}

/// Jobs that keep so much of a lab busy: half want one device, one in ten a whole host; durations
/// over three decades; some say about how long they take.
Workload lab_workload(std::size_t hosts, std::size_t jobs, double load, unsigned seed) {
  constexpr std::size_t kEach = 8;
  std::mt19937_64 numbers(seed);
  const auto unit = [&] { return static_cast<double>(numbers() >> 11) / 9007199254740992.0; };
  Workload workload{hosts * kEach, {}};
  double device_seconds = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    const double which = unit();
    const unsigned devices = which < 0.5 ? 1 : which < 0.7 ? 2 : which < 0.9 ? 4 : 8;
    const auto duration = static_cast<Moment>(60 * std::pow(10, 3 * unit()));
    std::optional<Moment> length;
    if (unit() < 0.5) length = static_cast<Moment>(static_cast<double>(duration) * (1 + 2 * unit()));
    workload.jobs.push_back(job(0, devices, duration, length));
    device_seconds += static_cast<double>(devices) * static_cast<double>(duration);
  }
  const double span = device_seconds / static_cast<double>(workload.devices) / load;
  for (WorkloadJob& one : workload.jobs) one.arrival = static_cast<Moment>(span * unit());
  std::ranges::sort(workload.jobs, {}, &WorkloadJob::arrival);
  return workload;
}

// Without the optimizer and under the sanitizers, eight take a minute.
#ifdef NDEBUG
constexpr unsigned kSeeds = 8;
#else
constexpr unsigned kSeeds = 1;
#endif

// A fault in who joins which line, or where it starts, makes these waits two to six times as long.
TEST_CASE("over a lab people wait about as long as in one queue, with a store and by ssh alone") {
  std::array<double, kPlacements.size()> total{};
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const Workload workload = lab_workload(20, 500, 0.9, seed);
    for (std::size_t i = 0; i < kPlacements.size(); ++i) {
      const Replay replay = replay_placed(kPlacements[i], workload, 20, {.backfill = true});
      total[i] += waits_of(all_jobs(workload), workload, replay).mean_s;
    }
  }
  const auto [by_ssh, with_store, one_queue] = total;
  CAPTURE(by_ssh);
  CAPTURE(with_store);
  CAPTURE(one_queue);
  CHECK(by_ssh <= 1.25 * with_store);
  CHECK(with_store <= 1.15 * one_queue);
}

}  // namespace
}  // namespace berth::placement_test
