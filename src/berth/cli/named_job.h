#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "berth/store/job_spool.h"

namespace berth::cli {

/// A job with its number.
struct NumberedJob {
  std::uint64_t number = 0;
  Job job;
  std::optional<unsigned> index{};  ///< one task of it is meant
  /// What is meant of it.
  std::vector<TaskId> tasks() const {
    return index ? std::vector{TaskId{number, index}} : tasks_of(number, job);
  }
};

/// How these tasks stand, in the order of `tasks`.
Result<std::vector<TaskStanding>> standings_of(const store::JobSpool& spool, const NumberedJob& job);

/// The jobs, or tasks of them, that these words mean: "12", "12.7". Error: `usage` for what is no number;
/// `failure` when there is no such job.
Result<std::vector<NumberedJob>> named_jobs(const store::JobSpool& spool,
                                            const std::vector<std::string>& words);

/// What of this user the word means. nullopt: it is no job's number, or there is none.
Result<std::optional<NumberedJob>> job_named(const store::JobSpool& spool, std::string_view word);

/// Takes a job, or a task of it, out of what is to be done: one that waits never runs, and one that runs is
/// asked to end (SIGTERM). Returns when it is over. Gives what happened, in words. Error: `failure` when it
/// is over already; `timed_out` when it still runs after `patience`.
/// `reason`: for whoever looks at it later; "": its user did it.
Result<std::string> cancel_job(const store::JobSpool& spool, const NumberedJob& job,
                               std::chrono::milliseconds patience, std::string_view reason = "");

/// Has those tasks wait again that are over and have not ended well. Gives how many. Error: `failure`, when
/// something of one still lives.
Result<std::size_t> retry_job(const store::JobSpool& spool, const NumberedJob& job);

/// How jobs have ended.
struct JobsEnd {
  int status = 0;    ///< of the first that did not end with 0
  std::string told;  ///< of those that did not end by themselves, whole lines
};
/// Returns when all of them are over. Error: `failure`, where one is forgotten meanwhile.
Result<JobsEnd> wait_for_jobs(const store::JobSpool& spool, const std::vector<NumberedJob>& jobs);

/// Sleeps for a moment that nobody notices: what happens to a job has no event that any number of others may
/// wait for.
void sleep_a_moment();

}  // namespace berth::cli
