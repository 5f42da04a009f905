#pragma once

#include <chrono>

#include "berth/store/job_spool.h"

namespace berth::store {

/// Forgets the jobs that have been over for longer than `age`, but none that another one is still to come
/// after. Does so once a day at most: a call on the same day costs one system call. What cannot be read or
/// removed stays.
void forget_old_jobs(JobSpool& spool, std::chrono::seconds age);

}  // namespace berth::store
