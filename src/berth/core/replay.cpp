#include "berth/core/replay.h"

#include <algorithm>
#include <numeric>

#include "berth/core/turn_order.h"

namespace berth {
namespace {

struct RunningJob {
  std::size_t job = 0;
  Moment since = 0;
  Moment ends = 0;
};

/// Goes from one moment at which something happens to the next.
class Replaying {
 public:
  Replaying(const Workload& workload, const LineRules& rules, const Decide& decide, const Progress& tell)
      : workload_(workload), rules_(rules), decide_(decide), tell_(tell) {
    line_.room_bytes.assign(workload.devices, 1);
    line_.sets.emplace_back(workload.devices);
    std::iota(line_.sets[0].begin(), line_.sets[0].end(), 0);
    replay_.grants.resize(workload.jobs.size());
    numbers_.resize(workload.jobs.size());
    for (const LineJob& job : workload.jobs) uids_.try_emplace(job.user, uids_.size());
  }

  Replay run() {
    if (!workload_.jobs.empty()) line_.now = replay_.from = workload_.jobs.front().arrival;
    for (Moment next = line_.now; next != kNever; next = next_moment()) {
      go_on_to(next);
      if (free_ > 0 && !line_.wishes.empty()) decide();
    }
    replay_.until = line_.now;
    return std::move(replay_);
  }

 private:
  void go_on_to(Moment moment) {
    if (!line_.wishes.empty())
      replay_.idle_s += static_cast<double>(free_) * static_cast<double>(moment - line_.now);
    line_.now = moment;
    std::erase_if(running_, [&](const RunningJob& each) { return each.ends <= moment; });
    free_ = workload_.devices;
    for (const RunningJob& each : running_) free_ -= workload_.jobs[each.job].devices;
    for (; next_ < workload_.jobs.size() && workload_.jobs[next_].arrival <= moment; ++next_) join(next_);
  }

  Moment next_moment() const {
    Moment next = next_ < workload_.jobs.size() ? workload_.jobs[next_].arrival : kNever;
    for (const RunningJob& each : running_) {
      next = std::min(next, each.ends);
      const Moment expected = each.since + rules_.assumed_s;
      if (!workload_.jobs[each.job].length && expected > line_.now) next = std::min(next, expected);
    }
    return next;
  }

  void join(std::size_t place) {
    const LineJob& job = workload_.jobs[place];
    line_.wishes.push_back({.id = {place + 1},
                            .uid = uid_of(place),
                            .count = job.devices,
                            .length = job.length,
                            .turn = number_of(place)});
  }

  std::optional<std::int64_t> number_of(std::size_t place) {
    if (rules_.order == TurnOrder::fifo) return std::nullopt;
    std::vector<Numbered> others;
    for (const Wish& wish : line_.wishes) others.push_back({wish.uid, wish.count, *wish.turn});
    for (const RunningJob& each : running_)
      others.push_back({uid_of(each.job), workload_.jobs[each.job].devices, numbers_[each.job], true});
    return numbers_[place] = next_turn(uid_of(place), others);
  }

  std::uint32_t uid_of(std::size_t job) const {
    return static_cast<std::uint32_t>(uids_.at(workload_.jobs[job].user));
  }

  /// Those that wait, with whose turn it is first at the front.
  void put_in_order() {
    if (rules_.order == TurnOrder::fifo) return;
    std::ranges::sort(line_.wishes, {}, &Wish::id);
    GpusByUser has;
    for (const RunningJob& each : running_) {
      has.firmly[uid_of(each.job)] += workload_.jobs[each.job].devices;
    }
    std::vector<Wish> line;
    for (const std::size_t at : order_of_turns(line_.wishes, has)) line.push_back(line_.wishes[at]);
    line_.wishes = std::move(line);
  }

  void decide() {
    line_.holds.clear();
    for (const RunningJob& each : running_) {
      const Moment until = expected_end(each.since, workload_.jobs[each.job].length, line_.now, rules_);
      for (const std::size_t device : replay_.grants[each.job].devices)
        line_.holds.push_back({device, each.since, until});
    }
    put_in_order();
    const std::vector<Turn> turns = decide_(line_);
    auto turn = turns.begin();
    std::erase_if(line_.wishes, [&](const Wish& wish) {
      const auto* now = turn == turns.end() ? nullptr : std::get_if<StartsNow>(&*turn++);
      if (now != nullptr) start(wish.id.value - 1, now->devices);
      return now != nullptr;
    });
    if (tell_) tell_(started_);
  }

  void start(std::size_t job, const std::vector<std::size_t>& devices) {
    replay_.grants[job] = {line_.now, devices};
    running_.push_back({job, line_.now, line_.now + takes(workload_.jobs[job])});
    free_ -= devices.size();
    ++started_;
  }

  const Workload& workload_;
  const LineRules& rules_;
  const Decide& decide_;
  const Progress& tell_;
  std::map<std::string, std::size_t> uids_;
  std::vector<std::int64_t> numbers_;  ///< of each job in the fair order, from when it joins
  Line line_;
  std::vector<RunningJob> running_;
  std::size_t free_ = 0;
  std::size_t next_ = 0;  ///< to come
  std::size_t started_ = 0;
  Replay replay_;
};

/// Without those who cannot start: nobody does in front of an earlier one, so at most as many as there are
/// devices.
Line front_of(const Line& line) {
  const std::size_t most = std::min(line.wishes.size(), line.room_bytes.size());
  const auto begin = line.wishes.begin();
  return {
      line.now, line.room_bytes, line.sets, line.holds, {begin, begin + static_cast<std::ptrdiff_t>(most)}};
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
  return Replaying(workload, rules, decide, tell).run();
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
