#pragma once

#include <sys/types.h>

#include <cstdint>

#include "berth/store/job_spool.h"

namespace berth::cli {

/// The jobs of this user on this machine. Makes nothing: where none was ever submitted there are none.
Result<store::JobSpool> open_spool();

/// Sees to it that there is a runner, and that it looks at what has news. Error: it could not be started.
Result<void> ensure_runner(const store::JobSpool& spool, TaskId news);

/// This program, for children of it. After an upgrade its file has lost its name to a newer one.
Result<std::string> program_path();

/// Whether this process is a runner, runs a task for one, or sends a notice. What is below it is no part of
/// whatever it was submitted in, though it may descend from it.
bool serves_jobs(pid_t pid);

}  // namespace berth::cli
