// Replays made-up jobs through a line, under one way to order it: bench_line POLICY LOAD MIX SEEDS
// JOBS RUNTIMES. Prints the mean wait in hours, the 99th percentile of those who want four GPUs or
// more, and the percentage of all GPU time that is idle while somebody waits. The jobs are the same
// for every policy, and on every machine.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/simulate/replay.h"
#include "made_jobs.h"

namespace {

using berth::Assignment;
using berth::Grant;
using berth::Hold;
using berth::Moment;
using berth::QueueRules;
using berth::QueueState;
using berth::StartsNow;
using berth::Wish;
using berth::WorkloadJob;
using namespace bench;

constexpr Moment kMinute = 60;

// The jobs
// -------------------------------------------------------------------------------------------------

double mean_run_time(std::span<const double> quantiles) {
  constexpr int kParts = 1000;
  double sum = 0;
  for (int part = 0; part < kParts; ++part) sum += run_time(quantiles, (part + 0.5) / kParts);
  return sum / kParts;
}

double mean_size(const Mix& mix) {
  double sum = 0;
  for (std::size_t at = 0; at < kSizes.size(); ++at) sum += mix.shares[at] * kSizes[at];
  return sum;
}

/// Poisson arrivals that ask for `load` of the machine. `says`: what a job says of its time, by its
/// run time and by a share that is its own.
template <class Says>
std::vector<WorkloadJob> jobs_of(std::span<const double> quantiles, const Mix& mix, double load,
                                 std::uint64_t seed, int count, const Says& says) {
  const double rate = load * kDevices / (mean_run_time(quantiles) * mean_size(mix));
  Chance chance(seed);
  std::vector<WorkloadJob> jobs;
  double arrival = 0;
  for (int at = 0; at < count; ++at) {
    arrival -= std::log(1 - chance.share()) / rate;
    const unsigned devices = size_at(mix, chance.share());
    const auto duration = static_cast<Moment>(std::llround(run_time(quantiles, chance.share())));
    jobs.push_back({static_cast<Moment>(arrival), devices, duration, says(duration, chance.share()), ""});
  }
  return jobs;
}

// Other ways to decide
// ------------------------------------------------------------------------------------------

std::vector<std::size_t> free_devices(const QueueState& line) {
  std::vector<std::size_t> free(line.sets[0]);
  for (const Hold& hold : line.holds) std::erase(free, hold.device);
  return free;
}

Assignment taken_from(std::vector<std::size_t>& free, unsigned count) {
  const auto rest = free.end() - static_cast<std::ptrdiff_t>(count);
  StartsNow start{{rest, free.end()}};
  free.erase(rest, free.end());
  return start;
}

std::vector<Assignment> first_fit(const QueueState& line) {
  std::vector<std::size_t> free = free_devices(line);
  std::vector<Assignment> turns;
  for (const Wish& wish : line.wishes)
    turns.push_back(wish.count <= free.size() ? taken_from(free, wish.count)
                                              : Assignment(berth::WaitsBehind{}));
  return turns;
}

/// How many devices are free, from each moment on.
class FreeFrom {
 public:
  FreeFrom(const QueueState& line, Moment resolution) : free_{{line.now, kDevices}, {berth::kNever, 0}} {
    for (const Hold& hold : line.holds) {
      const Moment rounded = (hold.until + resolution - 1) / resolution * resolution;
      take(1, line.now, rounded);
    }
  }

  Moment first_with(unsigned count, Moment length) const {
    for (auto from = free_.begin(); from->first != berth::kNever; ++from) {
      auto at = from;
      while (at->first < from->first + length && at->second >= count) ++at;
      if (at->first >= from->first + length) return from->first;
    }
    return berth::kNever;
  }

  void take(unsigned count, Moment from, Moment until) {
    split(from);
    split(until);
    for (auto at = free_.find(from); at->first < until; ++at) at->second -= count;
  }

 private:
  void split(Moment moment) { free_.emplace(moment, std::prev(free_.upper_bound(moment))->second); }

  std::map<Moment, std::size_t> free_;
};

/// Slurm's sched/backfill as its guide describes it (slurm.schedmd.com/sched_config.html), and not
/// slurmctld: in the order of arrival each job gets the first time at which it fits beside all
/// before it, of at most bf_max_job_test jobs and within bf_window. What is left out: the
/// bf_interval of 30 s between two rounds.
std::vector<Assignment> slurm(const QueueState& line, Moment window) {
  constexpr std::size_t kMostTested = 500;
  FreeFrom timeline(line, kMinute);
  std::vector<std::size_t> free = free_devices(line);
  std::vector<Assignment> turns;
  for (const Wish& wish : std::span(line.wishes).first(std::min(kMostTested, line.wishes.size()))) {
    const Moment length = *wish.length;
    const Moment from = timeline.first_with(wish.count, length);
    if (from < line.now + window) timeline.take(wish.count, from, from + length);
    turns.push_back(from == line.now ? taken_from(free, wish.count) : Assignment(berth::WaitsBehind{}));
  }
  return turns;
}

// Policies
// -------------------------------------------------------------------------------------------------

struct Policy {
  std::string_view name;
  Says says;
  QueueRules rules{};
  std::vector<Assignment> (*decides)(const QueueState&) = nullptr;  ///< null: ours does
};

// Its guide: bf_window at least as long as the longest time limit; by default it is a day.
const std::array kPolicies{
    Policy{"fcfs", nothing, {.backfill = false}},
    Policy{"firstfit", nothing, {}, first_fit},
    Policy{"none", nothing},
    Policy{"noneday", nothing, {.assumed_s = kDay}},
    Policy{"half", half_thrice},
    Policy{"thrice", thrice},
    Policy{"exact", truth},
    Policy{"slurm", thrice, {}, [](const QueueState& line) { return slurm(line, 3 * kLongest); }},
    Policy{"slurmday", thrice, {}, [](const QueueState& line) { return slurm(line, kDay); }},
};

// The figures
// -------------------------------------------------------------------------------------------------

struct Sums {
  double waited_s = 0;
  std::size_t jobs = 0;
  std::vector<Moment> large;  ///< waits of those who want four or more
  double idle_s = 0;
  double all_s = 0;

  void add(const berth::Workload& workload, const berth::Replay& replay) {
    for (std::size_t at = 0; at < workload.jobs.size(); ++at) {
      const Moment waited = replay.grants[at].at - workload.jobs[at].arrival;
      waited_s += static_cast<double>(waited);
      if (workload.jobs[at].devices >= 4) large.push_back(waited);
    }
    jobs += workload.jobs.size();
    idle_s += replay.idle_s;
    all_s += static_cast<double>(kDevices) * static_cast<double>(replay.until - replay.from);
  }

  void print() {
    std::ranges::sort(large);
    const double p99_s = static_cast<double>(large[(large.size() * 99 + 99) / 100 - 1]);
    fmt::print("{} {} {}\n", waited_s / static_cast<double>(jobs) / 3600, p99_s / 3600, 100 * idle_s / all_s);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const Policy* policy = named(kPolicies, argv[1]);
  const Mix* mix = named(kMixes, argv[3]);
  const std::vector<double> quantiles = read_quantiles(argv[6]);
  if (policy == nullptr || mix == nullptr || quantiles.size() < 2) return 2;
  Sums sums;
  for (int seed = 1; seed <= std::atoi(argv[4]); ++seed) {
    const berth::Workload workload{
        kDevices, jobs_of(quantiles, *mix, std::atof(argv[2]), static_cast<std::uint64_t>(seed),
                          std::atoi(argv[5]), policy->says)};
    sums.add(workload, policy->decides == nullptr
                           ? berth::replay(workload, policy->rules)
                           : berth::replay_with(policy->decides, workload, policy->rules));
  }
  sums.print();
}
