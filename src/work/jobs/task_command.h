#pragma once

#include <string>
#include <vector>

#include "berth/jobs/job_spool.h"
#include "berth/supervise/run.h"

namespace berth::jobs {

/// What the command of a task is and gets: its words, and the variables that say which task it is.
/// `is_far`: it runs on another host, where no file of ours is.
Result<void> fill_in_command(supervise::RunOptions& options, const JobSpool& spool, TaskId id, const Job& job,
                             bool is_far);

/// From here on, what this process and its children print goes to the files of the user's that the
/// job names, if it names any. What is kept of the output says where.
Result<void> send_output(TaskId id, const Job& job);

}  // namespace berth::jobs
