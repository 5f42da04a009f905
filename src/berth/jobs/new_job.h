#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/command/environment.h"
#include "berth/jobs/job_request.h"
#include "berth/jobs/job_spool.h"

namespace berth::jobs {

inline constexpr std::string_view kJobGroup = "The job";

/// A job as its command line, or the lines of its script, describe it.
struct Submission {
  Job job;
  JobRequest request;
};

/// Adds the options that say how to run each task of a job, including those of its request.
void add_task_options(command::Syntax& syntax, Submission& submission);

/// Checks all options together, and gives the job its request. Error: `usage`.
Result<void> settle(Submission& submission);

/// Refuses a job that this machine could never start, as `berth run` does. A job for other hosts
/// passes, and so does every job if the machine cannot be looked at. Error: `impossible`, with the
/// reasons of all devices; `usage`.
Result<void> check_possible_here(command::Environment& environment, const Submission& submission);

/// The spool of this user on this machine, made if it is missing.
Result<JobSpool> make_spool();

/// Job::rivals of a job with this request and environment.
std::string rivals_of(const StoredRequest& request, const std::vector<std::string>& environment);

/// The environment of a job that is submitted here.
std::vector<std::string> environment_of_job(const Job& job);

/// Adds the job and gives its number. It runs in its own folder, or in this one if it names none.
/// `environment`: what it gets. `script`: as in JobSpool::add.
Result<std::uint64_t> add_job(JobSpool& spool, Job job, std::string_view script,
                              const std::vector<std::string>& environment);
/// The same for a caller that has the right to add jobs since it looked at those that are there.
Result<std::uint64_t> add_job(JobSpool& spool, const sys::Descriptor& numbers, Job job,
                              std::string_view script, const std::vector<std::string>& environment);
/// The same with the environment of this process.
Result<std::uint64_t> add_job(JobSpool& spool, Job job, std::string_view script);

}  // namespace berth::jobs
