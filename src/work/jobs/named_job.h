#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/command/release.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/sys/clock.h"

namespace berth::jobs {

/// The command that lists the jobs there are, for completion.
inline constexpr std::string_view kWordsOfJobs = "__tasks";

/// A job with its number.
struct NumberedJob {
  std::uint64_t number = 0;
  Job job;
  std::optional<unsigned> index{};  ///< the one task that is meant; nullopt: the whole job
  /// The tasks that are meant.
  std::vector<TaskId> tasks() const {
    return index ? std::vector{TaskId{number, index}} : tasks_of(number, job);
  }
};

/// A line of such a list: the number, a tab, and what the job is.
std::string as_completion(const NumberedJob& job);

/// The states of these tasks, in the order of `tasks`.
Result<std::vector<TaskStanding>> standings_of(const JobSpool& spool, const NumberedJob& job);

/// The jobs, or tasks of them, that these words mean: "12", "12.7", or the name of a job. Error:
/// `usage` where a name is that of several jobs; `failure` when there is no such job.
Result<std::vector<NumberedJob>> named_jobs(const JobSpool& spool, const std::vector<std::string>& words);

/// The job of this user that the word means. Of a name, the one that is not over, or else the last
/// one. nullopt: there is no such job. Error: `usage` where several of that name are not over.
Result<std::optional<NumberedJob>> job_named(const JobSpool& spool, std::string_view word);

/// The lease that the word means: that of a running job with this number or name, or as
/// command::find_named_lease has it. The name of the first is "of job 12". Error: also `failure` if
/// the job has no lease now; `usage` if several of its tasks have one.
Result<command::NamedLease> find_lease(const std::vector<std::string>& words);

/// Cancels a job, or one task of it: if it waits, it never runs; if it runs, or has left something
/// behind, it is ended as job/run_end.h says. Returns when nothing of it lives any more, with
/// what happened in words. Error: `failure` if that was so already; `timed_out` if something of it
/// still lives after `patience`; its end goes on. `reason`: is shown with the job later; "": its
/// user has cancelled it.
Result<std::string> cancel_job(const JobSpool& spool, const NumberedJob& job,
                               std::chrono::milliseconds patience, std::string_view reason = "");

/// Makes the tasks wait again that are over and have not ended well. Gives how many they are.
/// Error: `failure` if a process of such a task still lives.
Result<std::size_t> retry_job(const JobSpool& spool, const NumberedJob& job);

/// Removes jobs that are over, with all that they have printed. Error, and none is removed: `usage`
/// for one task of a job; `failure` if one is not over, or a process of it still lives.
Result<void> forget_jobs(JobSpool& spool, const std::vector<NumberedJob>& jobs);

/// Between SIGTERM and SIGKILL, as the site says.
std::chrono::seconds time_grace_here();

/// How jobs have ended.
struct JobsEnd {
  int status = 0;    ///< of the first job that did not end with 0
  std::string told;  ///< about jobs that did not end by themselves, whole lines
};
/// Returns when all these jobs are over. Error: `failure` if one is removed from the spool
/// meanwhile; `timed_out` at the time `until`.
Result<JobsEnd> wait_for_jobs(const JobSpool& spool, const std::vector<NumberedJob>& jobs,
                              sys::Deadline until = {});

/// Sleeps for a moment too short to notice. Waiting for a job polls, because no event of a job can
/// wake any number of processes.
void sleep_a_moment();

}  // namespace berth::jobs
