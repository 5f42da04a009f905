#pragma once

#include <sys/types.h>

#include <cstdint>

#include "berth/store/job_spool.h"

namespace berth::cli {

/// The jobs of this user on this machine. Makes no files: if nothing was ever submitted, there are no jobs.
Result<store::JobSpool> open_spool();

/// Error: there is no runner, and one could not work under the limits of this process.
Result<void> can_have_runner(const store::JobSpool& spool);

/// Makes sure that there is a runner, and that it looks at the task `news`. Error: the runner could not be
/// started, or `can_have_runner`.
Result<void> ensure_runner(const store::JobSpool& spool, TaskId news);

/// The path by which this process starts more processes of Berth. After an upgrade, it is that of the newer
/// program.
Result<std::string> program_path();

/// Whether this process is a runner, runs a task for one, or sends a notice. The descendants of such a
/// process do not belong to the lease in which the job was submitted, though they may descend from its
/// holder.
bool serves_jobs(pid_t pid);

}  // namespace berth::cli
