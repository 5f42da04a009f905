#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/record.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"

// Which tasks of a user's jobs join the queue now.
namespace berth::jobs::runner {

/// What a runner knows of a job, in order of their numbers.
struct KnownJob {
  /// `left`: it is over, and what it has left behind still has its GPUs.
  enum class TaskStage : std::uint8_t { waiting, on_hold, in_queue, running, left, over };
  /// Why none of its tasks joins the queue now.
  enum class Hold : std::uint8_t {
    none,
    conditions,       ///< it waits for other jobs, or for its start time
    put_off_for_now,  ///< it could not join the queue, and tries again later
    tenant_gone,      ///< the program that it was submitted for has ended
  };

  std::uint64_t number = 0;
  std::string rivals;
  std::vector<TaskStage> tasks;  ///< in the order in which they are started
  unsigned at_once = 0;          ///< as Job::at_once
  Hold hold = Hold::none;
  std::vector<unsigned> indices{};  ///< of the tasks; none for a plain job
  std::uint64_t tenant = 0;         ///< as Job::tenant
  unsigned tenant_gpus = 0;         ///< as Job::tenant_gpus
  unsigned gpus = 1;                ///< how many each task gets
  std::string position{};           ///< TaskEvent::position
  std::string name{};               ///< as Job::name
  bool singleton = false;           ///< as Job::singleton
};

/// The tasks that are to join the queue now: of jobs that are rivals of each other one task at a
/// time, in the order of their places, which is that of their numbers unless their user has changed
/// it. So a thousand jobs of a user are one request in the queue of the machine, and a request that
/// comes meanwhile is next but one. Tenants get no more than they may have; what tenants that have
/// ended still have counts for all others. Gives for each task the place of the job in `jobs`, and
/// the place of the task in the job.
struct TaskToStart {
  std::size_t job = 0;
  std::size_t task = 0;

  bool operator==(const TaskToStart&) const = default;
};
std::vector<TaskToStart> tasks_to_start(const std::vector<KnownJob>& jobs);

// How long the runner waits before it tries something again, such as a task that has failed.

/// A job that could not join the queue, or whose task is run again, tries again after so long, then
/// after twice as long.
inline constexpr SteadyTime kFirstPause = std::chrono::milliseconds(200);
inline constexpr std::chrono::seconds kLongestPause{60};

/// Until when something is not tried again.
struct Backoff {
  SteadyTime until{};
  SteadyTime length{};
};

/// Begins the next pause, which is twice as long as the last one. A failure at the same moment, or
/// before the pause is over, makes it no longer.
void lengthen(Backoff& pause, SteadyTime now, SteadyTime first = kFirstPause,
              SteadyTime longest = kLongestPause);

}  // namespace berth::jobs::runner

namespace berth {

/// The notice about a job that is over: how its tasks ended. nullopt: no notice, because its user
/// has cancelled it.
struct EndNotice {
  NoticeEvent event = NoticeEvent::end;
  std::string words;  ///< "failed: exit status 3"
  int exit_status = 0;
};
/// REQUIRES: at least one task, and all tasks are over.
std::optional<EndNotice> end_notice(const std::vector<TaskStanding>& tasks);

}  // namespace berth
