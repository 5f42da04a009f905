#pragma once

#include <chrono>

#include "berth/jobs/job_spool.h"

namespace berth::jobs {

/// Removes the jobs that have been over for longer than `age`, except those that another job is
/// still to come after. Does so once a day at most: a second call on the same day costs one system
/// call. Jobs that cannot be read or removed stay.
void forget_old_jobs(JobSpool& spool, std::chrono::seconds age);

}  // namespace berth::jobs
