#pragma once

#include "berth/command/environment.h"
#include "berth/jobs/named_job.h"

namespace berth::jobs {

/// Connects the terminal of this process to that of a running task, until `detach_key` is typed or
/// the task ends. Its end is told, with its exit status; after the key the status is 0. Neither
/// this process nor its end changes anything for the job. Error: `usage` without a terminal, or for
/// an array; `failure` where the task has no terminal, does not run, or goes on without one.
Result<command::Output> attach(const JobSpool& spool, const NumberedJob& job, char detach_key);

struct LogWish {
  bool follow = false;  ///< it goes on until the task is over
  unsigned lines = 0;   ///< only so many of the last lines that are there at first; 0: all
};

/// Prints what the job has printed so far, that of each task of an array below its number. Of a
/// task that has not begun it says so on the error stream. Error: `usage` to follow an array;
/// `failure` if the job is forgotten meanwhile, or its output cannot be read.
Result<void> print_log(const JobSpool& spool, const NumberedJob& job, const LogWish& wish);

}  // namespace berth::jobs
