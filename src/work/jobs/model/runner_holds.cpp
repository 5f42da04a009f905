#include "berth/jobs/model/runner_holds.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>

namespace berth::jobs::runner {
namespace {

using namespace std::chrono_literals;
using TaskStage = KnownJob::TaskStage;

// A file that can be read again was so after a few tries. One that stays unreadable holds up the
// jobs of its user for no longer.
constexpr SteadyTime kUnreadPatience = 2s;
// Nothing tells of the end of a tenant.
constexpr SteadyTime kTenantPeriod = 1s;

/// The jobs of each name, for those of which one runs at a time.
class Namesakes {
 public:
  explicit Namesakes(const std::vector<KnownJob>& jobs) {
    if (std::ranges::none_of(jobs, &KnownJob::singleton)) return;
    for (const KnownJob& job : jobs) {
      if (job.name.empty()) continue;
      NamedJobs& named = named_[job.name];
      named.first = std::min(named.first, job.number);
      if (std::ranges::any_of(job.tasks, is_at_work)) named.at_work.insert(job.number);
    }
  }

  /// An earlier job of its name is not over, or another one is at work.
  bool hold_back(const KnownJob& job) const {
    const auto found = named_.find(job.name);
    if (!job.singleton || found == named_.end()) return false;
    const NamedJobs& named = found->second;
    return named.first < job.number || named.at_work.size() > (named.at_work.contains(job.number) ? 1 : 0);
  }

 private:
  struct NamedJobs {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::set<std::uint64_t> at_work;
  };
  static bool is_at_work(TaskStage task) {
    return task == TaskStage::in_queue || task == TaskStage::running || task == TaskStage::left;
  }

  std::map<std::string_view, NamedJobs> named_;
};

// In the order of their numbers: a job comes after older ones only, so one pass sees all that
// follows.
bool is_held_back(State& state, std::uint64_t number, std::int64_t wall_s, std::vector<AskWell>& asked) {
  const auto place = state.conditions.find(number);
  if (place == state.conditions.end()) return false;
  Conditions& conditions = place->second;
  if (!std::holds_alternative<ConditionsPending>(conditions.stage)) return true;
  const auto any_is_known = [&state](const std::vector<std::uint64_t>& others) {
    return std::ranges::any_of(others, [&state](std::uint64_t other) {
      return state.unread.contains(other) || (state.unlisted && !state.over.contains(other)) ||
             std::ranges::binary_search(state.jobs, other, {}, &KnownJob::number);
    });
  };
  if (wall_s < conditions.not_before_s || any_is_known(conditions.after) ||
      any_is_known(conditions.after_ok) || any_is_known(conditions.after_fail))
    return true;
  if (conditions.after_ok.empty() && conditions.after_fail.empty()) {
    state.conditions.erase(place);
    return false;
  }
  conditions.stage = EndingsAsked{};
  asked.push_back({number, conditions.after_ok, conditions.after_fail});
  return true;
}

bool is_put_off(const State& state, const KnownJob& job, SteadyTime now) {
  const auto own = state.pauses.find(job.number);
  const auto of_all = state.failures.find(job.rivals);
  return (own != state.pauses.end() && now < own->second.until) ||
         (of_all != state.failures.end() && now < of_all->second.pause.until);
}

/// Jobs that cannot be read now. What a runner has never read may be in the queue since before it.
class UnreadJobs {
 public:
  explicit UnreadJobs(const State& state)
      : any_(state.unlisted || !state.unread.empty()),
        any_in_queue_(state.unlisted || std::ranges::any_of(state.unread, [&state](const auto& each) {
                        return each.second.length < kUnreadPatience && is_unknown(state, each.first);
                      })) {}

  /// Any of them may ask for the same, have its name, or be of its tenant.
  bool hold_back(const KnownJob& job) const {
    return any_in_queue_ || (any_ && (job.singleton || job.tenant != 0));
  }

 private:
  static bool is_unknown(const State& state, std::uint64_t number) {
    return !state.over.contains(number) &&
           !std::ranges::binary_search(state.jobs, number, {}, &KnownJob::number);
  }

  bool any_;
  bool any_in_queue_;
};

}  // namespace

std::vector<AskWell> hold_jobs(State& state, SteadyTime now, std::int64_t wall_s) {
  using enum KnownJob::Hold;
  std::vector<AskWell> asked;
  const Namesakes namesakes(state.jobs);
  const UnreadJobs unread(state);
  for (KnownJob& job : state.jobs) {
    if (job.tenant != 0 && state.gone.contains(job.tenant))
      job.hold = tenant_gone;
    else if (is_held_back(state, job.number, wall_s, asked))
      job.hold = conditions;
    else if (is_put_off(state, job, now) || state.unread.contains(job.number) || unread.hold_back(job))
      job.hold = put_off_for_now;
    else if (namesakes.hold_back(job))
      job.hold = conditions;
    else
      job.hold = none;
  }
  return asked;
}

std::optional<SteadyTime> next_due(const State& state, SteadyTime now, std::int64_t wall_s) {
  std::optional<SteadyTime> due;
  const auto at_latest = [&](SteadyTime at) { due = std::min(due.value_or(at), at); };
  const auto ends = [&](const Backoff& pause) {
    if (pause.until > now) at_latest(pause.until);
  };
  for (const auto& [number, pause] : state.pauses) ends(pause);
  // These are asked for again by what wakes the runner, also if their time came meanwhile.
  const auto is_asked_again = [&](const Backoff& pause) { at_latest(std::max(pause.until, now)); };
  if (state.unlisted) is_asked_again(*state.unlisted);
  for (const auto& [number, pause] : state.unread) is_asked_again(pause);
  for (const auto& [rivals, failures] : state.failures) ends(failures.pause);
  for (const auto& [number, conditions] : state.conditions) {
    const std::int64_t left_s = conditions.not_before_s - wall_s;
    // The wall clock may be set meanwhile.
    if (left_s > 0) at_latest(now + std::min(std::chrono::seconds(left_s), kLongestPause));
    if (std::holds_alternative<ConditionFailed>(conditions.stage)) at_latest(now + kLongestPause);
  }
  for (const auto& [id, process] : state.processes)
    if (const auto* stray = std::get_if<Stray>(&process)) is_asked_again(stray->pause);
  if (!state.graces.empty()) at_latest(now + kTenantPeriod);
  return due;
}

}  // namespace berth::jobs::runner
