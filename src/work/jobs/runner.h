#pragma once

#include <cstdint>
#include <string>

#include "berth/jobs/job_spool.h"

namespace berth::jobs {

/// The jobs of this user on this machine. Makes no files: if nothing was ever submitted, there are
/// no jobs.
Result<JobSpool> open_spool();

/// Error: there is no runner, and one could not work under the limits of this process.
Result<void> can_have_runner(const JobSpool& spool);

/// Makes sure that there is a runner, and that it looks at the task `news`. Error: the runner could
/// not be started, or `can_have_runner`.
Result<void> ensure_runner(const JobSpool& spool, TaskId news);

/// Why the runner starts nothing: it is stopped or frozen, with what lets it go on. "": nothing is
/// known to stop it.
std::string why_runner_rests(const JobSpool& spool);

}  // namespace berth::jobs
