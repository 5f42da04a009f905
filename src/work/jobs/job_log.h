#pragma once

#include "berth/jobs/named_job.h"

namespace berth::jobs {

/// Prints what the job has printed so far, that of each task of an array below its number. Of a
/// task that has not begun it says so on the error stream. `follow`: goes on until the task is
/// over. Error: `usage` to follow an array; `failure` if the job is forgotten meanwhile, or its
/// output cannot be read.
Result<void> print_log(const JobSpool& spool, const NumberedJob& job, bool follow);

}  // namespace berth::jobs
