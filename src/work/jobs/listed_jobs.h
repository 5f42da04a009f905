#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/named_job.h"
#include "berth/request/request.h"
#include "berth/view/jobs.h"

namespace berth::jobs {

/// All jobs of the spool. `told` says in whole lines what could not be read.
Result<std::vector<NumberedJob>> all_jobs(const JobSpool& spool, std::string& told);

/// All jobs of the spool as they are shown, an array as one. `told` says in whole lines what could
/// not be read.
Result<std::vector<view::ListedTask>> all_listed(const JobSpool& spool, std::string& told);

/// Says of each task that stands in the queue, and has no reason yet, behind whom it stands there.
void say_behind_whom(std::vector<view::ListedTask>& tasks);

/// Says of each task that stands in the queue about when it starts, as `berth queue` has it. If
/// none stands there, the driver is not asked; if it does not answer, nothing is said.
void note_starts(command::Environment& environment, std::vector<view::ListedTask>& tasks);

/// Why this task waits, as `berth jobs` says it; "": it is about to join the queue, or cannot be
/// read.
std::string why_it_waits(const JobSpool& spool, TaskId id);

/// Why a job waits.
struct ToldWait {
  std::string told;       ///< a sentence
  bool in_queue = false;  ///< it stands in the queue of the machine, for its GPUs
};
Result<ToldWait> wait_of(const JobSpool& spool, const NumberedJob& job);

/// A user's wait until a task begins.
class WaitToBegin {
 public:
  /// The task has not begun. Tells the user so once, and why, unless it begins within a second.
  void look(const JobSpool& spool, TaskId id, const TaskStanding& standing);

 private:
  std::chrono::steady_clock::time_point tell_at_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  bool told_ = false;
};

/// When the user last read the table of all jobs on a terminal, since the epoch; 0: never.
std::int64_t last_shown_s(const JobSpool& spool);
void note_shown(const JobSpool& spool);

/// Each task of these jobs as it is shown. `told` says in whole lines what could not be read.
std::vector<view::ListedTask> listed_tasks(const JobSpool& spool, std::vector<NumberedJob> jobs,
                                           std::string& told);

/// `--state STATE`, as often as the user likes: adds to `states` the names of states that the table
/// of jobs shows.
command::Option state_option(std::vector<std::string>& states);

/// `--user USER`, a habit from queues in which all see the jobs of all: who is not the user is told
/// where others show.
command::Option user_option();

/// The arguments for which `state_option` adds these states.
std::vector<std::string> state_arguments(const std::vector<std::string>& states);

/// Leaves the tasks in these states; all if there are none.
void keep_states(std::vector<view::ListedTask>& tasks, const std::vector<std::string>& states);

/// The last `lines` lines of a task's output, at most `bytes` bytes. What was cut out of the middle
/// reads as NULs, and is left out. "": it has printed nothing yet.
Result<std::string> end_of_output(const std::string& path, std::size_t lines, std::size_t bytes);

/// The user's jobs on each of these hosts, asked through ssh, all at once; `states`: those in these
/// states alone, all if there are none. A host that does not answer is in `missing`.
view::JobsOfHosts look_at_jobs(const std::vector<LabHost>& hosts,
                               const std::vector<std::string>& states = {});

/// The one of these hosts that has a job of this number. Error: none has, or several have.
Result<LabHost> host_of_job(const std::vector<LabHost>& hosts, TaskId id);

}  // namespace berth::jobs
