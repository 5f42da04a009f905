#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/queue/schedule.h"

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
using ReplayDecider = std::function<std::vector<Assignment>(const QueueState&)>;
/// Called with the number of jobs that have got their devices so far.
using Progress = std::function<void(std::size_t started)>;

/// Replays under these rules. A job is expected to last as the earlier runs of the same thing did
/// that are over when it comes, if the rules count them. Looks whenever a job comes or ends, when a
/// job has taken as long as was assumed, and from then on whenever its going on opens a gap.
Replay replay(const Workload& workload, const QueueRules& rules, const Progress& tell = {});
/// Replays with another way to decide. REQUIRES: it lets a job start whenever all devices are free.
/// The rules say when a job is expected to end.
Replay replay_with(const ReplayDecider& decide, const Workload& workload, const QueueRules& rules,
                   const Progress& tell = {});

/// Places of jobs in a workload.
using JobIndices = std::vector<std::size_t>;
JobIndices all_jobs(const Workload& workload);
std::map<unsigned, JobIndices> jobs_by_size(const Workload& workload);
std::map<std::string, JobIndices> jobs_by_user(const Workload& workload);

/// How long some jobs waited, from arrival to grant.
struct WaitTimes {
  std::size_t jobs = 0;
  double mean_s = 0;
  Moment median_s = 0;
  Moment p99_s = 0;  ///< 99 of 100 jobs waited no longer
  Moment longest_s = 0;

  bool operator==(const WaitTimes&) const = default;
};
WaitTimes waits_of(std::span<const std::size_t> jobs, const Workload& workload, const Replay& replay);

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

/// The event loop of a replay: goes from one moment at which something happens to the next. A
/// derived class says what happens to a job that comes, and which jobs start.
class Replayer {
 public:
  Replayer(const Workload& workload, const QueueRules& rules, const Progress& tell);
  virtual ~Replayer() = default;

  /// To be called once.
  Replay run();

 protected:
  struct Running {
    std::size_t job = 0;
    Moment since = 0;
    Moment ends = 0;
  };

  /// This job has come.
  virtual void join(std::size_t job) = 0;
  /// How long the job that has come is expected to last, as the rules say.
  std::optional<Expectation> expectation(std::size_t job) const { return expectations_[job]; }
  /// Whether a job waits.
  virtual bool has_waiters() const = 0;
  /// Starts the jobs that can start now. Called while a job waits and a device is free.
  virtual void decide() = 0;

  void start(std::size_t job, std::vector<std::size_t> devices);
  /// The devices that running jobs have, and about until when. Devices are counted from `first`;
  /// the others are left out.
  std::vector<Hold> holds(std::size_t first, std::size_t count) const;

  const Workload& workload() const { return workload_; }
  const QueueRules& rules() const { return rules_; }
  const std::vector<Running>& running() const { return running_; }
  const Grant& grant_of(std::size_t job) const { return replay_.grants[job]; }
  Moment now() const { return now_; }
  std::size_t free() const { return free_; }

 private:
  void go_on_to(Moment moment);
  void note_end(std::size_t job);
  Moment assumed(std::size_t job) const;
  Moment expected(const Running& running) const;
  Moment next_moment() const;
  Moment next_shift() const;

  const Workload& workload_;
  const QueueRules& rules_;
  const Progress& tell_;
  std::vector<Running> running_;
  /// How long the runs of each user's programs have lasted that are over.
  std::map<std::pair<std::string, std::string>, std::vector<Moment>> past_runs_;
  std::vector<std::optional<Expectation>> expectations_;  ///< of each job, from when it comes
  std::multiset<Moment> waiting_lengths_;                 ///< how long the jobs that wait are taken to last
  Moment now_ = 0;
  std::size_t free_ = 0;
  std::size_t next_ = 0;  ///< to come
  std::size_t started_ = 0;
  Replay replay_;
};

}  // namespace berth
