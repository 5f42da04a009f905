// Replays made-up jobs of people who run the same things again, under one way to order the queue:
// bench_order POLICY LOAD WORLD SEEDS JOBS RUNTIMES. A world is a mix of sizes, or one with other
// GPUs, people or jobs (kWorlds). Prints for each seed, in hours: the mean wait, the mean slowdown
// (of at least ten minutes), the 99th percentile of those who want much, the longest wait, the
// percentage of all GPU time that is idle while somebody waits; then the mean wait of those who
// want much, of those who say a time, of those who say none; the 99th and 99.9th percentile of all,
// the mean wait of the user with the worst; the 99th percentile of each width of kSizes (0: nobody
// wants it). The jobs are the same for every policy, and on every machine.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/queue/schedule.h"
#include "berth/queue/start_forecast.h"
#include "made_jobs.h"

namespace {

using namespace berth;
using namespace bench;

constexpr std::size_t kRecipes = 160;
constexpr std::uint32_t kUsers = 8;
constexpr std::uint64_t kParts = 4;  ///< that a device has; a share is one
constexpr Moment kTick = 300;        ///< in which a waiter that could start is found
constexpr Moment kMinute = 60;

// Worlds
// -------------------------------------------------------------------------------------------------

struct World {
  std::string_view name;
  std::array<double, kSizes.size()> sizes = kMixes[0].shares;
  double spread = 0.6;     ///< of the runs of a recipe: sigma of a log-normal factor
  bool recurs = true;      ///< false: nobody runs a thing twice
  double narrow = 0;       ///< this part wants one of two models of GPU; the others want any
  double shares = 0;       ///< this part wants a part of one GPU
  double yields = 0;       ///< this part yields
  unsigned most_gpus = 0;  ///< that a user may have at once; 0: any
  bool fair = false;
  double first = 0;       ///< this part of the jobs nobody has run before
  bool zipf = false;      ///< few recipes make most runs, and each wants one size
  std::size_t array = 1;  ///< jobs that come at once, of one recipe; more than 1: by day alone
  double week_load = 0;   ///< in the fifth week; 0: as always
  double off_part = 0;    ///< of this part of the jobs, the record of runs is wrong
  double off = 1;         ///< by this factor
  bool one_lies = false;  ///< the record of one user is, of all jobs
};
constexpr std::array kWorlds{
    World{.name = "with8"},
    World{.name = "without8", .sizes = kMixes[1].shares},
    World{.name = "wild", .spread = 1.0},
    World{.name = "new", .recurs = false},
    World{.name = "models", .narrow = 0.6},
    World{.name = "shares", .shares = 0.4},
    World{.name = "yields", .yields = 0.2},
    World{.name = "limits", .most_gpus = 8},
    World{.name = "fair", .fair = true},
    World{.name = "first", .first = 0.3},
    World{.name = "zipf", .zipf = true},
    World{.name = "arrays", .array = 50},
    World{.name = "week", .week_load = 1.1},
    World{.name = "lies", .off = 0.1, .one_lies = true},
    World{.name = "tenth", .off_part = 0.2, .off = 0.1},
    World{.name = "tenfold", .off_part = 0.2, .off = 10},
};

struct Job {
  Moment arrival = 0;
  Moment duration = 0;
  unsigned devices = 1;
  std::size_t set = 0;
  std::uint32_t user = 0;
  std::size_t recipe = 0;
  std::optional<Moment> length{};
  bool shared = false;
  bool yields = false;
  double record = 1;  ///< its earlier runs seem to have taken so many times as long
};

const std::vector<std::vector<std::size_t>> kSets{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}};

std::size_t recipe_by_zipf(double share) {
  static const double all = [] {
    double sum = 0;
    for (std::size_t rank = 1; rank <= kRecipes; ++rank) sum += 1.0 / static_cast<double>(rank);
    return sum;
  }();
  double left = share * all;
  for (std::size_t rank = 1; rank < kRecipes; ++rank) {
    left -= 1.0 / static_cast<double>(rank);
    if (left < 0) return rank - 1;
  }
  return kRecipes - 1;
}

/// Of what one alone would have, at this time of the simulation, in seconds.
double rate(const World& world, double load, double at) {
  const double week = at / (7.0 * kDay);
  return world.week_load > 0 && week >= 4 && week < 5 ? world.week_load / load : 1;
}

/// A time that passes by day alone, on the clock.
double by_day(double at) {
  constexpr double kHalfDay = kDay / 2.0;
  return std::floor(at / kHalfDay) * kDay + std::fmod(at, kHalfDay);
}

/// Runs of recipes that each have a length of their own; some end within ten minutes, because they
/// crash.
std::vector<Job> jobs_of(const World& world, std::span<const double> quantiles, double load,
                         std::uint64_t seed, std::size_t count, Says says) {
  constexpr double kCrash = 0.15;
  Chance chance(seed);
  std::vector<double> lengths;
  for (std::size_t at = 0; at < kRecipes; ++at) lengths.push_back(run_time(quantiles, chance.share()));
  std::vector<Job> jobs(count);
  double work = 0;
  for (std::size_t at = 0; at < count; ++at) {
    Job& job = jobs[at];
    const double recipe = chance.share(), size = chance.share();
    job.recipe = world.zipf ? recipe_by_zipf(recipe) : static_cast<std::size_t>(recipe * kRecipes);
    job.devices = size_at({"", world.sizes}, world.zipf ? Chance(job.recipe + 1).share() : size);
    if (at % world.array != 0) {
      job.recipe = jobs[at - 1].recipe;
      job.devices = jobs[at - 1].devices;
    }
    job.user = static_cast<std::uint32_t>(job.recipe % kUsers);
    double seconds = lengths[job.recipe] * std::exp(world.spread * chance.normal());
    const double alone = run_time(quantiles, chance.share());
    if (!world.recurs) {
      seconds = alone;
      job.recipe = kRecipes + at;
    }
    const double crash = chance.share(), crashes_after = chance.share();
    if (crash < kCrash) seconds = std::min(seconds, 600 * crashes_after);
    job.duration = std::max<Moment>(1, std::llround(std::min(seconds, static_cast<double>(kLongest))));
    const double said = chance.share(), which = chance.share(), kind = chance.share();
    job.length = says(job.duration, said);
    if (which < world.narrow && job.devices <= 4) job.set = which < world.narrow / 2 ? 1 : 2;
    if (kind < world.shares) {
      job.shared = true;
      job.devices = 1;
    }
    job.yields = kind >= 1 - world.yields;
    if (world.first > 0 && chance.share() < world.first) job.recipe = kRecipes + at;
    if (world.off_part > 0 ? chance.share() < world.off_part : world.one_lies && job.user == 0)
      job.record = world.off;
    const double of_device = job.shared ? 1.0 / kParts : 1.0;
    work += static_cast<double>(job.duration) * job.devices * of_device;
  }
  const bool by_day_alone = world.array > 1;
  const double of_clock = by_day_alone ? 0.5 : 1;
  const double every = of_clock * work / static_cast<double>(count) / (load * kDevices);
  double arrival = 0;
  for (std::size_t at = 0; at < count; ++at) {
    if (at % world.array == 0)
      arrival -= std::log(1 - chance.share()) * every * static_cast<double>(world.array) /
                 rate(world, load, arrival);
    jobs[at].arrival = static_cast<Moment>(by_day_alone ? by_day(arrival) : arrival);
  }
  return jobs;
}

// The queue
// -------------------------------------------------------------------------------------------------

class Queue {
 public:
  /// `foretells_every`: 0: never.
  Queue(const World& world, std::span<const Job> jobs, const QueueRules& rules, Moment foretells_every)
      : world_(world),
        jobs_(jobs),
        rules_(rules),
        foretells_every_(foretells_every),
        waits_(jobs.size(), -1),
        turns_(jobs.size()) {}

  void run() {
    while (next_ < jobs_.size() || !waiting_.empty() || !running_.empty()) {
      go_on_to(next_moment());
      while (!waiting_.empty() && decide()) {
      }
      if (foretells_every_ != 0) foretell();
    }
  }

  struct Foretold {
    std::size_t job;
    bool comes;  ///< just then
    Moment at;
    std::optional<Moment> start;
  };
  const std::vector<Foretold>& foretold() const { return foretold_; }

  const std::vector<Moment>& waits() const { return waits_; }
  double idle_share() const { return idle_ / (static_cast<double>(kDevices) * static_cast<double>(now_)); }

 private:
  struct Waiting {
    std::size_t job;
    Moment since;
    std::optional<Expectation> expected;
  };
  struct Running {
    Waiting was;
    Moment since;
    std::vector<std::size_t> devices;
    Moment ends;
  };

  Moment assumed(const Waiting& one) const {
    if (jobs_[one.job].length) return *jobs_[one.job].length;
    return one.expected ? one.expected->likely_s.value_or(rules_.assumed_s) : rules_.assumed_s;
  }

  Moment next_moment() const {
    Moment next = next_ < jobs_.size() ? jobs_[next_].arrival : kNever;
    for (const Running& each : running_) {
      next = std::min(next, each.ends);
      if (const Moment end = each.since + assumed(each.was); end > now_) next = std::min(next, end);
    }
    if (foretells_every_ != 0 && !waiting_.empty()) next = std::min(next, foretells_next_);
    return waiting_.empty() || free_devices() == 0 ? next : std::min(next, now_ + kTick);
  }

  std::size_t free_devices() const {
    std::set<std::size_t> held;
    for (const Running& each : running_) held.insert(each.devices.begin(), each.devices.end());
    return kDevices - held.size();
  }

  void go_on_to(Moment moment) {
    if (!waiting_.empty()) idle_ += static_cast<double>(free_devices()) * static_cast<double>(moment - now_);
    now_ = moment;
    std::erase_if(running_, [&](const Running& each) {
      if (each.ends > now_) return false;
      const Moment lasted = each.ends - each.since;
      if (lasted >= kShortestRun) lasted_[jobs_[each.was.job].recipe].push_back(lasted);
      return true;
    });
    for (; next_ < jobs_.size() && jobs_[next_].arrival <= now_; ++next_) join(next_, jobs_[next_].arrival);
  }

  void join(std::size_t job, Moment since) {
    std::vector<Moment> lasted = lasted_[jobs_[job].recipe];
    for (Moment& each : lasted)
      each = std::max<Moment>(kShortestRun, std::llround(static_cast<double>(each) * jobs_[job].record));
    Waiting one{job, since, expectation_of(jobs_[job].length, lasted, rules_)};
    if (has_numbers(rules_.order)) {
      std::vector<Numbered> others;
      for (const Waiting& each : waiting_)
        others.push_back({jobs_[each.job].user, jobs_[each.job].devices, *turns_[each.job]});
      for (const Running& each : running_)
        others.push_back(
            {jobs_[each.was.job].user, jobs_[each.was.job].devices, *turns_[each.was.job], true});
      turns_[job] = next_number(rules_.order, jobs_[job].user, std::move(others));
    }
    waiting_.push_back(std::move(one));
  }

  GpusByUser gpus() const {
    GpusByUser has;
    for (const Running& each : running_) {
      const Job& job = jobs_[each.was.job];
      has.in_all[job.user] += job.devices;
      if (!job.yields) has.firmly[job.user] += job.devices;
    }
    return has;
  }

  QueueState line_of(const GpusByUser& has) const {
    QueueState queue{.now = now_, .room_bytes = std::vector<std::uint64_t>(kDevices, kParts), .sets = kSets};
    for (const Running& each : running_) {
      const Job& job = jobs_[each.was.job];
      const Moment until = expected_end(each.since, job.length, now_, rules_, 1,
                                        each.was.expected ? each.was.expected->likely_s : std::nullopt);
      for (const std::size_t device : each.devices) {
        Hold hold{device, each.since, until, !job.shared, job.shared ? 1U : 0U, {each.was.job + 1}};
        if (job.yields) {
          hold.leaves = Leaves::when_asked;
          hold.left_by = now_ + kMinute;
        }
        queue.holds.push_back(hold);
      }
    }
    std::vector<Wish> wishes;
    for (std::size_t at = 0; at < waiting_.size(); ++at) {
      const Waiting& one = waiting_[at];
      const Job& job = jobs_[one.job];
      Wish wish{.id = {at + 1},
                .uid = job.user,
                .candidates = job.set,
                .count = job.devices,
                .shared = job.shared,
                .bytes = job.shared ? 1U : 0U,
                .length = job.length,
                .since = one.since,
                .longest_wait = rules_.longest_wait_s,
                .yields = job.yields};
      if (one.expected) {
        wish.expected = one.expected->expected_s;
        wish.likely = one.expected->likely_s;
      }
      if (has_numbers(rules_.order)) wish.number = turns_[one.job];
      const auto mine = has.in_all.find(job.user);
      const std::uint64_t own = mine == has.in_all.end() ? 0 : mine->second;
      wish.skipped = world_.most_gpus != 0 && own + job.devices > world_.most_gpus;
      wishes.push_back(wish);
    }
    for (const std::size_t at : queue_order(wishes, has, now_)) queue.wishes.push_back(wishes[at]);
    return queue;
  }

  /// Whether it is to be asked again at once, because somebody has started or ended.
  bool decide() {
    const GpusByUser has = gpus();
    const QueueState queue = line_of(has);
    const std::vector<Assignment> assignments = schedule(queue, rules_);
    std::set<std::size_t> started;
    GpusByUser given = has;
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const std::size_t place = queue.wishes[at].id.value - 1;
      const Job& job = jobs_[waiting_[place].job];
      const auto* starts = std::get_if<StartsNow>(&assignments[at]);
      if (starts == nullptr) continue;
      // One user's wishes may be over its limit together.
      std::uint64_t& own = given.in_all[job.user];
      if (world_.most_gpus != 0 && own + job.devices > world_.most_gpus) continue;
      own += job.devices;
      started.insert(place);
      Moment& waited = waits_[waiting_[place].job];
      if (waited < 0) waited = now_ - job.arrival;
      const Moment lasts = std::min(job.duration, job.length.value_or(job.duration));
      running_.push_back({waiting_[place], now_, starts->devices, now_ + lasts});
    }
    for (const std::size_t place : std::views::reverse(started))
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    if (!started.empty()) return true;
    for (const Assignment& assignment : assignments) {
      const auto* kept = std::get_if<ReservedFrom>(&assignment);
      if (kept != nullptr && kept->from <= now_ && end_yielding(kept->devices)) return true;
    }
    return false;
  }

  void foretell() {
    const bool all = now_ >= foretells_next_;
    if (all) foretells_next_ = (now_ / foretells_every_ + 1) * foretells_every_;
    const auto comes = [&](const Waiting& one) { return jobs_[one.job].arrival == now_; };
    if (waiting_.empty() || (!all && std::ranges::none_of(waiting_, comes))) return;
    const GpusByUser has = gpus();
    const QueueState queue = line_of(has);
    const auto starts = rules_.expect == Expect::none ? starts_by_limits(queue) : starts_by_runs(queue, has);
    for (std::size_t at = 0; at < starts.size(); ++at) {
      const Waiting& one = waiting_[queue.wishes[at].id.value - 1];
      if (jobs_[one.job].yields || waits_[one.job] >= 0 || !(all || comes(one))) continue;
      const auto start = starts[at].transform([](const ExpectedStart& told) { return told.from; });
      foretold_.push_back({one.job, comes(one), now_, start});
    }
  }

  std::vector<std::optional<ExpectedStart>> starts_by_limits(QueueState queue) const {
    for (Hold& hold : queue.holds) {
      if (!jobs_[hold.owner.value - 1].length) hold.until = kNever;
    }
    return expected_starts(queue, rules_);
  }

  std::vector<std::optional<ExpectedStart>> starts_by_runs(QueueState queue, const GpusByUser& has) const {
    for (Wish& wish : queue.wishes) wish.id = {jobs_.size() + waiting_[wish.id.value - 1].job + 1};
    std::vector<Tenure> tenures;
    for (const Running& each : running_) {
      const Job& job = jobs_[each.was.job];
      const auto& expected = each.was.expected;
      tenures.push_back({{each.was.job + 1},
                         job.user,
                         each.since,
                         job.length,
                         expected ? expected->likely_s : std::nullopt,
                         expected ? std::optional(expected->expected_s) : std::nullopt,
                         job.yields});
    }
    return foretold_starts(queue, tenures, has, rules_);
  }

  /// Ends those that yield on these devices; they join anew.
  bool end_yielding(const std::vector<std::size_t>& devices) {
    std::vector<std::size_t> ended;
    std::erase_if(running_, [&](const Running& each) {
      const bool leaves =
          jobs_[each.was.job].yields && std::ranges::any_of(each.devices, [&](std::size_t one) {
            return std::ranges::find(devices, one) != devices.end();
          });
      if (leaves) ended.push_back(each.was.job);
      return leaves;
    });
    for (const std::size_t job : ended) join(job, now_);
    return !ended.empty();
  }

  const World& world_;
  std::span<const Job> jobs_;
  const QueueRules& rules_;
  Moment foretells_every_;
  Moment foretells_next_ = 0;
  std::vector<Foretold> foretold_;
  std::vector<Moment> waits_;  ///< of each job until it first started
  std::vector<std::optional<OrderNumber>> turns_;
  std::map<std::size_t, std::vector<Moment>> lasted_;  ///< by recipe
  std::vector<Waiting> waiting_;                       ///< as they came
  std::vector<Running> running_;
  std::size_t next_ = 0;
  Moment now_ = 0;
  double idle_ = 0;
};

// Policies
// -------------------------------------------------------------------------------------------------

struct Policy {
  std::string_view name;
  Says says;
  Expect expect = Expect::none;
};
constexpr std::array kPolicies{
    Policy{"exact", truth},
    Policy{"exact-ratio", truth, Expect::limits},
    Policy{"none", nothing},
    Policy{"none-runs", nothing, Expect::runs},
    Policy{"half", half_thrice},
    Policy{"half-limits", half_thrice, Expect::limits},
    Policy{"half-runs", half_thrice, Expect::runs},
    Policy{"thrice", thrice},
    Policy{"thrice-limits", thrice, Expect::limits},
    Policy{"thrice-runs", thrice, Expect::runs},
};

// The figures
// -------------------------------------------------------------------------------------------------

double mean(const std::vector<Moment>& waits) {
  const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
  return waits.empty() ? 0 : sum / static_cast<double>(waits.size()) / 3600;
}

/// In hours; 0 of nobody.
double not_exceeded_by(std::vector<Moment> waits, std::size_t per_mille) {
  if (waits.empty()) return 0;
  std::ranges::sort(waits);
  return static_cast<double>(waits[(waits.size() * per_mille + 999) / 1000 - 1]) / 3600;
}

void print(const World& world, std::span<const Job> jobs, const Queue& queue) {
  std::vector<Moment> all, much, saying, silent;
  std::map<unsigned, std::vector<Moment>> of_width;
  std::map<std::uint32_t, std::vector<Moment>> of_user;
  double slowdown = 0;
  for (std::size_t at = 0; at < jobs.size(); ++at) {
    const Job& job = jobs[at];
    if (job.yields) continue;
    const Moment waited = queue.waits()[at];
    all.push_back(waited);
    slowdown += std::max(1.0, static_cast<double>(waited + job.duration) /
                                  static_cast<double>(std::max<Moment>(job.duration, 600)));
    const bool wide = world.narrow > 0 ? job.set == 0 && job.devices > 1 : job.devices >= 4;
    if (wide) much.push_back(waited);
    of_width[job.devices].push_back(waited);
    of_user[job.user].push_back(waited);
    (job.length ? saying : silent).push_back(waited);
  }
  double worst_user = 0;
  for (const auto& [user, waits] : of_user) worst_user = std::max(worst_user, mean(waits));
  fmt::print("{:.4f} {:.4f} {:.4f} {:.4f} {:.2f} {:.4f} {:.4f} {:.4f} {:.4f} {:.4f} {:.4f}", mean(all),
             slowdown / static_cast<double>(all.size()), not_exceeded_by(much, 990),
             not_exceeded_by(all, 1000), 100 * queue.idle_share(), mean(much), mean(saying), mean(silent),
             not_exceeded_by(all, 990), not_exceeded_by(all, 999), worst_user);
  for (const unsigned width : kSizes) fmt::print(" {:.4f}", not_exceeded_by(of_width[width], 990));
  fmt::print("\n");
}

void print_foretold(std::span<const Job> jobs, const Queue& queue) {
  for (const bool as_it_comes : {true, false}) {
    double could = 0, told = 0, right = 0, too_soon = 0;
    for (const Queue::Foretold& each : queue.foretold()) {
      if (as_it_comes && !each.comes) continue;
      ++could;
      if (!each.start) continue;
      ++told;
      const Moment wait = std::max(kMinute, jobs[each.job].arrival + queue.waits()[each.job] - each.at);
      const Moment said = std::max(kMinute, *each.start - each.at);
      right += said <= 2 * wait && wait <= 2 * said ? 1 : 0;
      too_soon += wait > 2 * said ? 1 : 0;
    }
    const double of_told = 100 / std::max(told, 1.0);
    fmt::print("{} {:.1f} {:.1f} {:.1f} {:.1f}{}", could, 100 * told / std::max(could, 1.0), of_told * right,
               of_told * too_soon, of_told * (told - right - too_soon), as_it_comes ? "  " : "\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 && argc != 8) return 2;
  const Policy* policy = named(kPolicies, argv[1]);
  const World* world = named(kWorlds, argv[3]);
  const std::vector<double> quantiles = read_quantiles(argv[6]);
  if (policy == nullptr || world == nullptr || quantiles.size() < 2) return 2;
  QueueRules rules{.order = world->fair ? QueueOrder::fair : QueueOrder::fifo, .expect = policy->expect};
  for (int seed = 1; seed <= std::atoi(argv[4]); ++seed) {
    const std::vector<Job> jobs =
        jobs_of(*world, quantiles, std::atof(argv[2]), static_cast<std::uint64_t>(seed),
                static_cast<std::size_t>(std::atoi(argv[5])), policy->says);
    Queue queue(*world, jobs, rules, argc == 8 ? 3600 * std::atoi(argv[7]) : 0);
    queue.run();
    if (argc == 8)
      print_foretold(jobs, queue);
    else
      print(*world, jobs, queue);
  }
}
