#include "berth/view/policy_words.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/verdict/original_locks.h"

namespace berth::view {
namespace {

// "2 GPUs at the same time, and leases of 4h"
std::string allowance_in_words(const Allowance& allowance) {
  std::vector<std::string> parts;
  if (allowance.gpus)
    parts.push_back(
        fmt::format("{} GPU{} at the same time", *allowance.gpus, *allowance.gpus == 1 ? "" : "s"));
  if (allowance.lab_gpus)
    parts.push_back(fmt::format("{} GPU{} at the same time through the queue of the lab", *allowance.lab_gpus,
                                *allowance.lab_gpus == 1 ? "" : "s"));
  if (allowance.waiting)
    parts.push_back(
        fmt::format("{} request{} in the queue", *allowance.waiting, *allowance.waiting == 1 ? "" : "s"));
  if (allowance.time_s) parts.push_back(fmt::format("leases of {}", time_for_people(*allowance.time_s)));
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string limits_in_words(const Allowances& limits, std::string_view when) {
  std::string text;
  const auto tell = [&](std::string_view who, const Allowance& allowance) {
    if (allowance != Allowance())
      text += fmt::format("; {}{} may have at most {}", when, who, allowance_in_words(allowance));
  };
  tell("a user", limits.each);
  for (const auto& [user, allowance] : limits.of_users) tell(user, allowance);
  for (const auto& [group, allowance] : limits.of_groups)
    tell(fmt::format("who is in the group {}", group), allowance);
  return text;
}

}  // namespace

std::string policy_in_words(const SitePolicy& policy) {
  std::string text = fmt::format("up to {} in use that nobody explains is tolerated",
                                 bytes_for_people(policy.hidden_tolerance_bytes));
  for (const ExcludedDevice& each : policy.excluded)
    text += fmt::format("; {} is excluded ({})", each.selector, each.reason);
  if (!policy.ignored_programs.empty())
    text += fmt::format("; programs that do not count: {}", fmt::join(policy.ignored_programs, ", "));
  if (!policy.ignored_users.empty())
    text += fmt::format("; users that do not count: {}", fmt::join(policy.ignored_users, ", "));
  if (policy.leave_free > 0)
    text += fmt::format("; requests that yield leave {} free", counted(policy.leave_free, "GPU"));
  if (policy.shares_per_gpu) text += fmt::format("; a GPU has at most {} shares", *policy.shares_per_gpu);
  if (!policy.host.name.empty()) text += fmt::format("; this machine is called {}", policy.host.name);
  if (!policy.host.labels.empty())
    text += fmt::format("; its labels: {}", fmt::join(policy.host.labels, ", "));
  for (const OriginalLock& row : policy.original_locks) {
    text += fmt::format("; the lock {} counts{}", row.path,
                        row.program.empty() ? "" : fmt::format(" (originals of {})", row.program));
  }
  if (policy.default_wait_s)
    text += fmt::format("; a wait lasts at most {}", duration_for_people(*policy.default_wait_s));
  if (policy.commands != CommandVisibility::full)
    text += policy.commands == CommandVisibility::none ? "; others' commands are not told"
                                                       : "; of others' commands the program is told";
  if (policy.idle_leftovers_s)
    text += fmt::format(
        "; processes that a command leaves behind keep its lease for at most {} after they last computed",
        duration_for_people(*policy.idle_leftovers_s));
  if (policy.idle_leases_s)
    text +=
        fmt::format("; a job of `berth run` on whose GPUs nothing computes for {} yields to whoever waits",
                    duration_for_people(*policy.idle_leases_s));
  text += fmt::format("; a job without a time limit is assumed to last {}",
                      time_for_people(policy.queue.assumed_s));
  if (const std::string_view rule = traits_of(policy.queue.order).rule; !rule.empty())
    text += fmt::format("; {}", rule);
  if (policy.queue.expect != Expect::none)
    text +=
        fmt::format("; who has waited longest for its length comes first, by {}, and after {} who came first",
                    policy.queue.expect == Expect::limits ? "time limits" : "time limits and earlier runs",
                    time_for_people(policy.queue.longest_wait_s));
  text += policy.queue.backfill ? "; later jobs fill gaps" : "; no job starts before an earlier rival";
  text += limits_in_words(policy.limits.always, "");
  for (const HourlyAllowances& each : policy.limits.hours)
    text += limits_in_words(each.limits, fmt::format("{}: ", each.when.text));
  text += fmt::format("; the output of a job takes at most {}", bytes_for_people(policy.job_output_bytes));
  text += policy.keep_jobs_s
              ? fmt::format(", and a job that is over is kept for {}", time_for_people(*policy.keep_jobs_s))
              : ", and a job that is over is kept until its user forgets it";
  if (policy.tenant_gpus) text += fmt::format("; a program has {} GPUs at once at most", *policy.tenant_gpus);
  if (policy.tenant_time_s)
    text += fmt::format("; a job of a program takes at most {}", time_for_people(*policy.tenant_time_s));
  if (policy.most_time_s)
    text +=
        fmt::format("; a lease lasts at most {}, even without --time", time_for_people(*policy.most_time_s));
  return text;
}

}  // namespace berth::view
