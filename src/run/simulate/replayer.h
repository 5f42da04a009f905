#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/queue/expected_run_time.h"

#include "berth/simulate/replay.h"

namespace berth {

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
