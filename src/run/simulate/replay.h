#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/queue/backfill.h"

// Replays a queue whose jobs are all known, from the first arrival to the last end. It asks the
// same `schedule` as the real queue, so it tells what other rules would have meant for the same
// jobs.
namespace berth {

/// A job that wants whole devices, no matter which.
struct WorkloadJob {
  Moment arrival = 0;  ///< seconds, from any zero
  unsigned devices = 1;
  Moment duration = 1;             ///< how long it takes if nobody ends it; at least 1
  std::optional<Moment> length{};  ///< its time limit, at which it is ended
  std::string user{};
  /// Jobs of a user with the same text are runs of the same thing. "": nothing is known of it.
  std::string program{};

  bool operator==(const WorkloadJob&) const = default;
};

/// All jobs that come to one queue.
struct Workload {
  std::size_t devices = 0;          ///< how many there are
  std::vector<WorkloadJob> jobs{};  ///< by arrival; none wants more devices than there are
};

/// How long a job has its devices.
Moment takes(const WorkloadJob& job);

struct Grant {
  Moment at = kNever;
  std::vector<std::size_t> devices{};

  bool operator==(const Grant&) const = default;
};

/// The result of a replay.
struct Replay {
  std::vector<Grant> grants{};  ///< of each job
  Moment from = 0;              ///< the first arrival
  Moment until = 0;             ///< the last end
  double idle_s = 0;            ///< of all devices together, while somebody waited
};

/// Decides the turn of each wish of a queue; a wish that it leaves out waits.
using Decide = std::function<std::vector<Assignment>(const QueueState&)>;
/// Called with the number of jobs that have got their devices so far.
using Progress = std::function<void(std::size_t started)>;

/// Replays under these rules. A job is expected to last as the earlier runs of the same thing did
/// that are over when it comes, if the rules count them. Looks whenever a job comes or ends, when a
/// job has taken as long as was assumed, and from then on whenever its going on opens a gap.
Replay replay(const Workload& workload, const QueueRules& rules, const Progress& tell = {});
/// Replays with another way to decide. REQUIRES: it lets a job start whenever all devices are free.
/// The rules say when a job is expected to end.
Replay replay_with(const Decide& decide, const Workload& workload, const QueueRules& rules,
                   const Progress& tell = {});

/// Places of jobs in a workload.
using JobIndices = std::vector<std::size_t>;
JobIndices all_jobs(const Workload& workload);
std::map<unsigned, JobIndices> jobs_by_size(const Workload& workload);
std::map<std::string, JobIndices> jobs_by_user(const Workload& workload);

/// How long some jobs waited, from arrival to grant.
struct Waits {
  std::size_t jobs = 0;
  double mean_s = 0;
  Moment median_s = 0;
  Moment p99_s = 0;  ///< 99 of 100 jobs waited no longer

  bool operator==(const Waits&) const = default;
};
Waits waits_of(std::span<const std::size_t> jobs, const Workload& workload, const Replay& replay);

/// How many of some jobs start sooner in one replay than in another, and how many later.
struct Shift {
  std::size_t sooner = 0;
  std::size_t later = 0;

  bool operator==(const Shift&) const = default;
};
Shift shift_of(std::span<const std::size_t> jobs, const Replay& before, const Replay& after);

/// The share of all devices' time, from the first arrival to the last end.
double idle_share(const Workload& workload, const Replay& replay);  ///< idle while somebody waits
double used_share(const Workload& workload, const Replay& replay);  ///< used by jobs

}  // namespace berth
