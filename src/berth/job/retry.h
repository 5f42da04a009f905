#pragma once

#include "berth/job/job.h"
#include "berth/job/task_standing.h"

// Retries: which tasks are run again without a user's asking (--retries, --retry-on). The process
// of a task that has ended asks this and writes `retried` (jobs/model/task_run.h). A user's own
// `berth retry` is retry_job (jobs/named_job.h).
namespace berth {

/// Whether a task that has ended like this is to be run again.
bool is_to_be_retried(const Job& job, const TaskStanding& task);

/// Whether a run of it has ended badly. A run that others ended is none: a waiter, or what killed
/// its process.
bool has_failed(const TaskStanding& task);

}  // namespace berth
