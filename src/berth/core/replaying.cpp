#include "berth/core/replaying.h"

#include <algorithm>
#include <utility>

namespace berth {

Replaying::Replaying(const Workload& workload, const LineRules& rules, const Progress& tell)
    : workload_(workload), rules_(rules), tell_(tell) {
  replay_.grants.resize(workload.jobs.size());
}

Replay Replaying::run() {
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

void Replaying::go_on_to(Moment moment) {
  if (has_waiters()) replay_.idle_s += static_cast<double>(free_) * static_cast<double>(moment - now_);
  now_ = moment;
  std::erase_if(running_, [&](const Running& each) { return each.ends <= moment; });
  free_ = workload_.devices;
  for (const Running& each : running_) free_ -= workload_.jobs[each.job].devices;
  for (; next_ < workload_.jobs.size() && workload_.jobs[next_].arrival <= moment; ++next_) join(next_);
}

Moment Replaying::next_moment() const {
  Moment next = next_ < workload_.jobs.size() ? workload_.jobs[next_].arrival : kNever;
  for (const Running& each : running_) {
    next = std::min(next, each.ends);
    const Moment expected = each.since + rules_.assumed_s;
    if (!workload_.jobs[each.job].length && expected > now_) next = std::min(next, expected);
  }
  return next;
}

void Replaying::start(std::size_t job, std::vector<std::size_t> devices) {
  free_ -= devices.size();
  replay_.grants[job] = {now_, std::move(devices)};
  running_.push_back({job, now_, now_ + takes(workload_.jobs[job])});
  ++started_;
}

std::vector<Hold> Replaying::holds(std::size_t first, std::size_t count) const {
  std::vector<Hold> holds;
  for (const Running& each : running_) {
    const Moment until = expected_end(each.since, workload_.jobs[each.job].length, now_, rules_);
    for (const std::size_t device : replay_.grants[each.job].devices) {
      if (device >= first && device < first + count) holds.push_back({device - first, each.since, until});
    }
  }
  return holds;
}

}  // namespace berth
