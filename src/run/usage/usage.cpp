#include "berth/usage/usage.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"

namespace berth {
namespace {

bool has_more_hours(const UsageRow& a, const UsageRow& b) {
  return std::tuple(-a.leased_gpu_hours, a.who, a.job, a.host) <
         std::tuple(-b.leased_gpu_hours, b.who, b.job, b.host);
}

}  // namespace

Usage total_usage(UsageBy by, const std::vector<std::pair<std::string, Usage>>& told,
                  std::vector<std::string> missing, UsersAre users) {
  Usage total;
  total.by = by;
  total.missing = std::move(missing);
  std::map<std::pair<std::string, std::string>, UsageRow> of_users;
  for (const auto& [host, usage] : told) {
    total.from_s = total.from_s == 0 ? usage.from_s : std::min(total.from_s, usage.from_s);
    total.to_s = std::max(total.to_s, usage.to_s);
    total.unwatched_s = std::max(total.unwatched_s, usage.unwatched_s);
    for (const UsageRow& row : usage.rows) {
      if (by == UsageBy::device || users == UsersAre::of_hosts) {
        total.rows.push_back(row);
        total.rows.back().host = host;
        continue;
      }
      UsageRow& sum = of_users[{row.who, row.job}];
      sum.who = row.who;
      sum.job = row.job;
      sum.leases += row.leases;
      sum.leased_gpu_hours += row.leased_gpu_hours;
      sum.used_gpu_hours += row.used_gpu_hours;
    }
  }
  for (auto& [key, row] : of_users) total.rows.push_back(std::move(row));
  std::ranges::sort(total.rows, has_more_hours);
  return total;
}

namespace {

constexpr std::int64_t kMostPoints = 2000;

Result<void> check_names(const QuestionParameters& parameters,
                         std::initializer_list<std::string_view> allowed) {
  for (const auto& [name, value] : parameters) {
    if (std::ranges::find(allowed, name) != allowed.end()) continue;
    return fail(ErrorCode::usage, "unknown parameter '{}'{}", name, instead_of(name, allowed));
  }
  return {};
}

Result<void> read_since(const QuestionParameters& parameters, std::int64_t& since_s) {
  const auto given = parameters.find("since");
  if (given == parameters.end()) return {};
  // Programs ask this too, and write seconds.
  const auto seconds = seconds_from_text(given->second, Unitless::is_base);
  if (!seconds) return std::unexpected(context(seconds.error(), "since"));
  if (*seconds < 1 || *seconds > kAccountsKept)
    return fail(ErrorCode::usage, "since: must be from 1s to 400d, like 24h or 7d");
  since_s = *seconds;
  return {};
}

Result<void> read_points(const QuestionParameters& parameters, std::int64_t& points) {
  const auto given = parameters.find("points");
  if (given == parameters.end()) return {};
  const auto number = number_from_text<std::int64_t>(given->second);
  if (!number || *number < 2 || *number > kMostPoints)
    return fail(ErrorCode::usage, "points: must be a number from 2 to {}", kMostPoints);
  points = *number;
  return {};
}

}  // namespace

Result<DeviceQuestion> device_question(const QuestionParameters& parameters) {
  if (auto checked = check_names(parameters, {"device", "since", "points"}); !checked)
    return std::unexpected(checked.error());
  DeviceQuestion question;
  const auto device = parameters.find("device");
  if (device == parameters.end() || device->second.empty())
    return fail(ErrorCode::usage, "device: must be the UUID of a device, as in /api/v1/snapshot");
  question.uuid = device->second;
  BERTH_DO(read_since(parameters, question.since_s));
  BERTH_DO(read_points(parameters, question.points));
  return question;
}

Result<UsageQuestion> usage_question(const QuestionParameters& parameters) {
  if (auto checked = check_names(parameters, {"since", "by"}); !checked)
    return std::unexpected(checked.error());
  UsageQuestion question;
  BERTH_DO(read_since(parameters, question.since_s));
  if (const auto by = parameters.find("by"); by != parameters.end()) {
    if (!read_value(by->second, question.by))
      return fail(ErrorCode::usage, "by: must be user, device or job");
  }
  return question;
}

Result<LeasesQuestion> leases_question(const QuestionParameters& parameters) {
  if (auto checked = check_names(parameters, {"since", "points"}); !checked)
    return std::unexpected(checked.error());
  LeasesQuestion question;
  BERTH_DO(read_since(parameters, question.since_s));
  BERTH_DO(read_points(parameters, question.points));
  return question;
}

namespace {

/// Why a lease is no job of the workload.
enum class NoJob { wish_unknown, share, yields, too_large };
constexpr std::array<std::string_view, 4> kNoJobWords{
    "they were recorded without when they were asked for",
    "they were for a share of a GPU's memory",
    "they yielded, so nobody else waited for them",
    "they had more GPUs than there are",
};

std::optional<NoJob> no_job(const RecordedLease& lease, std::size_t devices) {
  if (!lease.wish) return NoJob::wish_unknown;
  if (!lease.wish->whole) return NoJob::share;
  if (lease.wish->yields) return NoJob::yields;
  if (lease.devices.empty() || lease.devices.size() > devices) return NoJob::too_large;
  return std::nullopt;
}

/// A job with what became of it.
struct RecordedJob {
  WorkloadJob job;
  TicketId id;
  Grant grant;
};

RecordedJob recorded_job(const RecordedLease& lease, Moment end, const RecordedLeases& recorded) {
  const RecordedWish& wish = *lease.wish;
  const Moment joined = std::min(wish.joined_s, lease.begun_s);
  const Moment arrival = lease.begun_s < recorded.from_s ? lease.begun_s : std::max(joined, recorded.from_s);
  const Moment duration = std::max<Moment>(1, end - lease.begun_s);
  WorkloadJob job{.arrival = arrival,
                  .devices = static_cast<unsigned>(lease.devices.size()),
                  .duration = duration,
                  .user = lease.user};
  if (wish.time_s) job.length = std::max(*wish.time_s, duration);
  if (wish.command) job.program = std::to_string(*wish.command);
  return {std::move(job), lease.id, {lease.begun_s, lease.devices}};
}

/// Jobs by arrival.
std::vector<RecordedJob> jobs_of(std::vector<const RecordedLease*> leases, const RecordedLeases& recorded) {
  // If two leases of one device began in the same second, the one that ended first was the first.
  std::ranges::sort(leases, {}, [](const RecordedLease* each) {
    return std::tuple(each->begun_s, each->ended_s.value_or(kNever), each->id);
  });
  std::vector<RecordedJob> jobs;
  std::vector<Moment> next_begin(recorded.devices.size(), kNever);
  for (auto each = leases.rbegin(); each != leases.rend(); ++each) {
    const RecordedLease& lease = **each;
    Moment end = lease.ended_s.value_or(recorded.to_s);
    for (const std::size_t device : lease.devices) {
      end = std::min(end, next_begin[device]);
      next_begin[device] = lease.begun_s;
    }
    jobs.push_back(recorded_job(lease, end, recorded));
  }
  std::ranges::sort(jobs, {}, [](const RecordedJob& each) { return std::tuple(each.job.arrival, each.id); });
  return jobs;
}

/// Somebody comes, starts or ends.
struct Change {
  Moment at = 0;
  int waiting = 0;  ///< so many more wait from then on
  int held = 0;     ///< so many more devices are held

  bool operator==(const Change&) const = default;
};

double idle_while_somebody_waits(const std::vector<RecordedJob>& jobs, std::size_t devices) {
  std::vector<Change> steps;
  for (const auto& [job, id, grant] : jobs) {
    const int held = static_cast<int>(job.devices);
    steps.push_back({job.arrival, 1, 0});
    steps.push_back({grant.at, -1, held});
    steps.push_back({grant.at + takes(job), 0, -held});
  }
  std::ranges::sort(steps, {}, &Change::at);
  double idle_s = 0;
  Moment last = steps.empty() ? 0 : steps.front().at;
  std::int64_t waiting = 0, held = 0;
  for (const Change& step : steps) {
    const std::int64_t free = std::max<std::int64_t>(0, static_cast<std::int64_t>(devices) - held);
    if (waiting > 0) idle_s += static_cast<double>(free) * static_cast<double>(step.at - last);
    last = step.at;
    waiting += step.waiting;
    held += step.held;
  }
  return idle_s;
}

}  // namespace

RecordedWorkload recorded_workload(const RecordedLeases& recorded, std::optional<std::size_t> devices) {
  RecordedWorkload made;
  made.workload.devices = devices.value_or(recorded.devices.size());
  std::array<std::size_t, kNoJobWords.size()> left_out{};
  std::vector<const RecordedLease*> leases;
  for (const RecordedLease& lease : recorded.leases) {
    if (const auto reason = no_job(lease, made.workload.devices)) {
      ++left_out[static_cast<std::size_t>(*reason)];
    } else {
      leases.push_back(&lease);
    }
  }
  for (std::size_t reason = 0; reason < left_out.size(); ++reason)
    if (left_out[reason] > 0) made.left_out.push_back({kNoJobWords[reason], left_out[reason]});
  const std::vector<RecordedJob> jobs = jobs_of(std::move(leases), recorded);
  if (!jobs.empty()) made.recorded.from = jobs.front().job.arrival;
  for (const RecordedJob& each : jobs) {
    made.workload.jobs.push_back(each.job);
    made.recorded.grants.push_back(each.grant);
    made.recorded.until = std::max(made.recorded.until, each.grant.at + takes(each.job));
  }
  made.recorded.idle_s = idle_while_somebody_waits(jobs, made.workload.devices);
  return made;
}

}  // namespace berth
