#include "berth/simulate/replayer.h"

#include <algorithm>

namespace berth {
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
