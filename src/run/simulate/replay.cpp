#include "berth/simulate/replay.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <tuple>
#include <utility>

#include "berth/queue/schedule.h"

namespace berth {
namespace {

/// Which of the jobs that wait a decider sees.
enum class Sees {
  all,
  /// Of those that ask for the same, only so many as could matter: those that could start now, and
  /// those that could have a reservation. The others are behind them in each order but that of
  /// users, and fit nowhere where these do not.
  first_of_alike,
};

/// A single queue for all devices.
class QueueReplay : public Replayer {
 public:
  QueueReplay(const Workload& workload, const QueueRules& rules, const ReplayDecider& decide, Sees sees,
              const Progress& tell)
      : Replayer(workload, rules, tell), decide_(decide), sees_(sees) {
    queue_.room_bytes.assign(workload.devices, 1);
    queue_.sets.emplace_back(workload.devices);
    std::iota(queue_.sets[0].begin(), queue_.sets[0].end(), 0);
    numbers_.resize(workload.jobs.size());
    for (const WorkloadJob& job : workload.jobs) uids_.try_emplace(job.user, uids_.size());
  }

 private:
  void join(std::size_t at) override {
    const WorkloadJob& job = workload().jobs[at];
    Wish wish{.id = {at + 1},
              .uid = uid_of(at),
              .count = job.devices,
              .length = job.length,
              .since = job.arrival,
              .longest_wait = rules().longest_wait_s,
              .number = number_of(at)};
    if (const auto expected = expectation(at)) {
      wish.expected = expected->expected_s;
      wish.likely = expected->likely_s;
    }
    waiting_[{wish.count, wish.length, wish.likely, wish.expected}].push_back(wish);
  }

  bool has_waiters() const override { return !waiting_.empty(); }

  std::optional<OrderNumber> number_of(std::size_t at) {
    if (!has_numbers(rules().order)) return std::nullopt;
    std::vector<Numbered> others;
    for (const auto& [asked, alike] : waiting_)
      for (const Wish& wish : alike) others.push_back({wish.uid, wish.count, *wish.number});
    for (const Running& each : running())
      others.push_back({uid_of(each.job), workload().jobs[each.job].devices, *numbers_[each.job], true});
    return numbers_[at] = next_number(rules().order, uid_of(at), std::move(others));
  }

  std::uint32_t uid_of(std::size_t job) const {
    return static_cast<std::uint32_t>(uids_.at(workload().jobs[job].user));
  }

  void take_wishes() {
    queue_.wishes.clear();
    for (const auto& [asked, alike] : waiting_) {
      const std::size_t most = free() / alike.front().count + kReservationsByRunTimes;
      const std::size_t seen = sees_ == Sees::all ? alike.size() : std::min(alike.size(), most);
      queue_.wishes.insert(queue_.wishes.end(), alike.begin(),
                           alike.begin() + static_cast<std::ptrdiff_t>(seen));
    }
    std::ranges::sort(queue_.wishes, {}, &Wish::id);
  }

  void remove(const Wish& wish) {
    const auto alike = waiting_.find({wish.count, wish.length, wish.likely, wish.expected});
    alike->second.erase(std::ranges::lower_bound(alike->second, wish.id, {}, &Wish::id));
    if (alike->second.empty()) waiting_.erase(alike);
  }

  /// Sorts the waiting wishes by the order of the queue.
  void put_in_order() {
    if (!rules().orders_by_more_than_coming()) return;
    GpusByUser has;
    for (const Running& each : running()) {
      has.firmly[uid_of(each.job)] += workload().jobs[each.job].devices;
    }
    std::vector<Wish> queue;
    for (const std::size_t at : queue_order(queue_.wishes, has, now())) queue.push_back(queue_.wishes[at]);
    queue_.wishes = std::move(queue);
  }

  void decide() override {
    queue_.now = now();
    queue_.holds = holds(0, workload().devices);
    take_wishes();
    put_in_order();
    const std::vector<Assignment> assignments = decide_(queue_);
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const auto* starts = std::get_if<StartsNow>(&assignments[at]);
      if (starts == nullptr) continue;
      start(queue_.wishes[at].id.value - 1, starts->devices);
      remove(queue_.wishes[at]);
    }
  }

  const ReplayDecider& decide_;
  const Sees sees_;
  /// By devices, length, likely and expected time; those that ask for the same as they came.
  using Asked = std::tuple<unsigned, std::optional<Moment>, std::optional<Moment>, std::optional<Moment>>;
  std::map<Asked, std::deque<Wish>> waiting_;
  std::map<std::string, std::size_t> uids_;
  std::vector<std::optional<OrderNumber>> numbers_;  ///< of each job, from when it joins
  QueueState queue_;
};

/// Without backfill, no wish starts before an earlier one. So at most as many wishes start as there
/// are devices, and the others are left out here.
QueueState front_of(const QueueState& queue) {
  const std::size_t most = std::min(queue.wishes.size(), queue.room_bytes.size());
  const auto begin = queue.wishes.begin();
  return {queue.now,  queue.second, queue.room_bytes,
          queue.sets, queue.holds,  {begin, begin + static_cast<std::ptrdiff_t>(most)}};
}

double device_seconds(const Workload& workload, const Replay& replay) {
  return static_cast<double>(workload.devices) * static_cast<double>(replay.until - replay.from);
}

template <class Key, class KeyOf>
std::map<Key, JobIndices> grouped(const Workload& workload, const KeyOf& key_of) {
  std::map<Key, JobIndices> groups;
  for (std::size_t at = 0; at < workload.jobs.size(); ++at) groups[key_of(workload.jobs[at])].push_back(at);
  return groups;
}

}  // namespace

Moment takes(const WorkloadJob& job) {
  return std::min(job.duration, job.length.value_or(job.duration));
}

Replay replay_with(const ReplayDecider& decide, const Workload& workload, const QueueRules& rules,
                   const Progress& tell) {
  return QueueReplay(workload, rules, decide, Sees::all, tell).run();
}

Replay replay(const Workload& workload, const QueueRules& rules, const Progress& tell) {
  const auto decide = [&](const QueueState& queue) {
    return rules.backfill ? schedule(queue, rules) : schedule(front_of(queue), rules);
  };
  const bool alike_are_in_order = rules.backfill && !has_numbers(rules.order);
  const ReplayDecider decider = decide;
  return QueueReplay(workload, rules, decider, alike_are_in_order ? Sees::first_of_alike : Sees::all, tell)
      .run();
}

JobIndices all_jobs(const Workload& workload) {
  JobIndices indices(workload.jobs.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::map<unsigned, JobIndices> jobs_by_size(const Workload& workload) {
  return grouped<unsigned>(workload, [](const WorkloadJob& job) { return job.devices; });
}

std::map<std::string, JobIndices> jobs_by_user(const Workload& workload) {
  return grouped<std::string>(workload, [](const WorkloadJob& job) { return job.user; });
}

WaitTimes waits_of(std::span<const std::size_t> jobs, const Workload& workload, const Replay& replay) {
  if (jobs.empty()) return {};
  std::vector<Moment> waits;
  waits.reserve(jobs.size());
  for (const std::size_t job : jobs) waits.push_back(replay.grants[job].at - workload.jobs[job].arrival);
  std::ranges::sort(waits);
  const auto among = [&](std::size_t percent) { return waits[(waits.size() * percent + 99) / 100 - 1]; };
  const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
  return {waits.size(), sum / static_cast<double>(waits.size()), among(50), among(99), waits.back()};
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
  for (const WorkloadJob& job : workload.jobs)
    used += static_cast<double>(job.devices) * static_cast<double>(takes(job));
  return all > 0 ? used / all : 0;
}

Replayer::Replayer(const Workload& workload, const QueueRules& rules, const Progress& tell)
    : workload_(workload), rules_(rules), tell_(tell) {
  replay_.grants.resize(workload.jobs.size());
  expectations_.resize(workload.jobs.size());
}

/// For how long devices are taken to be kept for it.
Moment Replayer::assumed(std::size_t job) const {
  if (const auto& length = workload_.jobs[job].length) return *length;
  const auto& expected = expectations_[job];
  return expected ? expected->likely_s.value_or(rules_.assumed_s) : rules_.assumed_s;
}

Moment Replayer::expected(const Running& running) const {
  const auto& expectation = expectations_[running.job];
  return expected_end(running.since, workload_.jobs[running.job].length, now_, rules_, 1,
                      expectation ? expectation->likely_s : std::nullopt);
}

void Replayer::note_end(std::size_t job) {
  const WorkloadJob& ended = workload_.jobs[job];
  if (!ended.program.empty() && takes(ended) >= kShortestRun)
    past_runs_[{ended.user, ended.program}].push_back(takes(ended));
}

Replay Replayer::run() {
  if (!workload_.jobs.empty()) now_ = replay_.from = workload_.jobs.front().arrival;
  for (Moment next = now_; next != kNever; next = next_moment()) {
    go_on_to(next);
    if (free_ == 0 || !has_waiters()) continue;
    decide();
    if (tell_) tell_(started_);
  }
  replay_.until = now_;
  return std::move(replay_);
}

void Replayer::go_on_to(Moment moment) {
  if (has_waiters()) replay_.idle_s += static_cast<double>(free_) * static_cast<double>(moment - now_);
  now_ = moment;
  std::erase_if(running_, [&](const Running& each) {
    if (each.ends <= moment) note_end(each.job);
    return each.ends <= moment;
  });
  free_ = workload_.devices;
  for (const Running& each : running_) free_ -= workload_.jobs[each.job].devices;
  for (; next_ < workload_.jobs.size() && workload_.jobs[next_].arrival <= moment; ++next_) {
    const WorkloadJob& job = workload_.jobs[next_];
    expectations_[next_] = expectation_of(job.length, past_runs_[{job.user, job.program}], rules_);
    waiting_lengths_.insert(assumed(next_));
    join(next_);
  }
}

Moment Replayer::next_moment() const {
  Moment next = next_ < workload_.jobs.size() ? workload_.jobs[next_].arrival : kNever;
  for (const Running& each : running_) {
    next = std::min(next, each.ends);
    const Moment assumed_end = each.since + assumed(each.job);
    if (!workload_.jobs[each.job].length && assumed_end > now_) next = std::min(next, assumed_end);
  }
  return std::min(next, next_shift());
}

// If a job runs for longer than its assumed time, its expected end moves by four seconds in each
// second. So a gap before that end grows until a job fits into it, and the end passes the expected
// ends of other jobs. Between two such moments nothing changes for the jobs that wait.
Moment Replayer::next_shift() const {
  if (!rules_.backfill || free_ == 0 || waiting_lengths_.empty()) return kNever;
  std::vector<const Running*> late;
  std::vector<Moment> ends;
  for (const Running& each : running_) {
    const auto& length = workload_.jobs[each.job].length;
    const Moment end = each.since + assumed(each.job);
    if (!length && end <= now_)
      late.push_back(&each);
    else
      ends.push_back(end);
  }
  std::ranges::sort(ends);
  Moment next = kNever;
  for (const Running* each : late) {
    const Moment since = each->since;
    const Moment end = expected(*each);
    const auto fits = waiting_lengths_.upper_bound(end - now_);
    if (fits != waiting_lengths_.end()) next = std::min(next, since + (*fits + kLonger - 1) / kLonger);
    // At `meets`, this end is not yet after the other end. One moment later it is.
    for (auto other = std::ranges::lower_bound(ends, end); other != ends.end(); ++other) {
      const Moment meets = (*other + kLonger * since) / (kLonger + 1);
      for (const Moment moment : {meets, meets + 1}) {
        if (moment > now_) next = std::min(next, moment);
      }
      if (meets > now_) break;
    }
  }
  return next;
}

void Replayer::start(std::size_t job, std::vector<std::size_t> devices) {
  free_ -= devices.size();
  waiting_lengths_.erase(waiting_lengths_.find(assumed(job)));
  replay_.grants[job] = {now_, std::move(devices)};
  running_.push_back({job, now_, now_ + takes(workload_.jobs[job])});
  ++started_;
}

std::vector<Hold> Replayer::holds(std::size_t first, std::size_t count) const {
  std::vector<Hold> holds;
  for (const Running& each : running_) {
    const Moment until = expected(each);
    for (const std::size_t device : replay_.grants[each.job].devices) {
      if (device >= first && device < first + count) holds.push_back({device - first, each.since, until});
    }
  }
  return holds;
}

}  // namespace berth
