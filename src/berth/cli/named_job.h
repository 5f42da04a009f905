#pragma once

#include <string_view>
#include <vector>

#include "berth/store/job_spool.h"

namespace berth::cli {

/// The jobs that these words mean, by their numbers. Error: `usage` for what is no number; `failure` when
/// there is no such job.
Result<std::vector<TaskId>> named_jobs(const store::JobSpool& spool, const std::vector<std::string>& words);

/// The task of this user that the word means. nullopt: it is no job's number, or there is none.
Result<std::optional<TaskId>> job_named(const store::JobSpool& spool, std::string_view word);

/// Takes a job out of what is to be done: one that waits never runs, and one that runs is asked to end
/// (SIGTERM). Returns when it is over. Gives what happened, in words. Error: `failure` when it is over
/// already; `timed_out` when it still runs after `patience`.
Result<std::string> cancel_task(const store::JobSpool& spool, TaskId id, std::chrono::milliseconds patience);

/// Sleeps for a moment that nobody notices: what happens to a job has no event that any number of others may
/// wait for.
void sleep_a_moment();

}  // namespace berth::cli
