#include "berth/simulate/replay.h"

#include <algorithm>
#include <numeric>

#include "berth/queue/queue_order.h"
#include "berth/simulate/replayer.h"

namespace berth {
namespace {

/// One line for all devices.
class OneLine : public Replaying {
 public:
  OneLine(const Workload& workload, const LineRules& rules, const Decide& decide, const Progress& tell)
      : Replaying(workload, rules, tell), decide_(decide) {
    line_.room_bytes.assign(workload.devices, 1);
    line_.sets.emplace_back(workload.devices);
    std::iota(line_.sets[0].begin(), line_.sets[0].end(), 0);
    numbers_.resize(workload.jobs.size());
    for (const LineJob& job : workload.jobs) uids_.try_emplace(job.user, uids_.size());
  }

 private:
  void join(std::size_t place) override {
    const LineJob& job = workload().jobs[place];
    Wish wish{.id = {place + 1},
              .uid = uid_of(place),
              .count = job.devices,
              .length = job.length,
              .since = job.arrival,
              .turn = number_of(place)};
    if (const auto expected = expectation(place)) {
      wish.expected = expected->expected_s;
      wish.likely = expected->likely_s;
    }
    line_.wishes.push_back(wish);
  }

  bool has_waiters() const override { return !line_.wishes.empty(); }

  std::optional<std::int64_t> number_of(std::size_t place) {
    if (!traits_of(rules().order).numbers) return std::nullopt;
    std::vector<Numbered> others;
    for (const Wish& wish : line_.wishes) others.push_back({wish.uid, wish.count, *wish.turn});
    for (const Running& each : running())
      others.push_back({uid_of(each.job), workload().jobs[each.job].devices, numbers_[each.job], true});
    return numbers_[place] = next_turn(uid_of(place), others);
  }

  std::uint32_t uid_of(std::size_t job) const {
    return static_cast<std::uint32_t>(uids_.at(workload().jobs[job].user));
  }

  /// Those that wait, with whose turn it is first at the front.
  void put_in_order() {
    if (!rules().orders_by_more_than_coming()) return;
    std::ranges::sort(line_.wishes, {}, &Wish::id);
    GpusByUser has;
    for (const Running& each : running()) {
      has.firmly[uid_of(each.job)] += workload().jobs[each.job].devices;
    }
    std::vector<Wish> line;
    for (const std::size_t at : order_of_turns(line_.wishes, has, now(), rules().longest_wait_s))
      line.push_back(line_.wishes[at]);
    line_.wishes = std::move(line);
  }

  void decide() override {
    line_.now = now();
    line_.holds = holds(0, workload().devices);
    put_in_order();
    const std::vector<Turn> turns = decide_(line_);
    auto turn = turns.begin();
    std::erase_if(line_.wishes, [&](const Wish& wish) {
      const auto* starts = turn == turns.end() ? nullptr : std::get_if<StartsNow>(&*turn++);
      if (starts != nullptr) start(wish.id.value - 1, starts->devices);
      return starts != nullptr;
    });
  }

  const Decide& decide_;
  std::map<std::string, std::size_t> uids_;
  std::vector<std::int64_t> numbers_;  ///< of each job in the fair order, from when it joins
  Line line_;
};

/// Without those who cannot start: nobody does in front of an earlier one, so at most as many as there are
/// devices.
Line front_of(const Line& line) {
  const std::size_t most = std::min(line.wishes.size(), line.room_bytes.size());
  const auto begin = line.wishes.begin();
  return {line.now,  line.second, line.room_bytes,
          line.sets, line.holds,  {begin, begin + static_cast<std::ptrdiff_t>(most)}};
}

double device_seconds(const Workload& workload, const Replay& replay) {
  return static_cast<double>(workload.devices) * static_cast<double>(replay.until - replay.from);
}

template <class Key, class KeyOf>
std::map<Key, JobPlaces> grouped(const Workload& workload, const KeyOf& key_of) {
  std::map<Key, JobPlaces> groups;
  for (std::size_t place = 0; place < workload.jobs.size(); ++place)
    groups[key_of(workload.jobs[place])].push_back(place);
  return groups;
}

}  // namespace

Moment takes(const LineJob& job) {
  return std::min(job.duration, job.length.value_or(job.duration));
}

Replay replay_with(const Decide& decide, const Workload& workload, const LineRules& rules,
                   const Progress& tell) {
  return OneLine(workload, rules, decide, tell).run();
}

Replay replay(const Workload& workload, const LineRules& rules, const Progress& tell) {
  const auto decide = [&](const Line& line) {
    return rules.backfill ? schedule(line, rules) : schedule(front_of(line), rules);
  };
  return replay_with(decide, workload, rules, tell);
}

JobPlaces all_jobs(const Workload& workload) {
  JobPlaces places(workload.jobs.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

std::map<unsigned, JobPlaces> jobs_by_size(const Workload& workload) {
  return grouped<unsigned>(workload, [](const LineJob& job) { return job.devices; });
}

std::map<std::string, JobPlaces> jobs_by_user(const Workload& workload) {
  return grouped<std::string>(workload, [](const LineJob& job) { return job.user; });
}

Waits waits_of(std::span<const std::size_t> jobs, const Workload& workload, const Replay& replay) {
  if (jobs.empty()) return {};
  std::vector<Moment> waits;
  waits.reserve(jobs.size());
  for (const std::size_t job : jobs) waits.push_back(replay.grants[job].at - workload.jobs[job].arrival);
  std::ranges::sort(waits);
  const auto among = [&](std::size_t percent) { return waits[(waits.size() * percent + 99) / 100 - 1]; };
  const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
  return {waits.size(), sum / static_cast<double>(waits.size()), among(50), among(99)};
}

Shift shift_of(std::span<const std::size_t> jobs, const Replay& before, const Replay& after) {
  Shift shift;
  for (const std::size_t job : jobs) {
    if (after.grants[job].at < before.grants[job].at) ++shift.sooner;
    if (after.grants[job].at > before.grants[job].at) ++shift.later;
  }
  return shift;
}

double idle_share(const Workload& workload, const Replay& replay) {
  const double all = device_seconds(workload, replay);
  return all > 0 ? replay.idle_s / all : 0;
}

double used_share(const Workload& workload, const Replay& replay) {
  const double all = device_seconds(workload, replay);
  double used = 0;
  for (const LineJob& job : workload.jobs)
    used += static_cast<double>(job.devices) * static_cast<double>(takes(job));
  return all > 0 ? used / all : 0;
}

}  // namespace berth
