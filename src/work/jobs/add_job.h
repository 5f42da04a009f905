#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/jobs/job_spool.h"

namespace berth::jobs {

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

/// A job that was submitted.
struct KeptJob {
  std::uint64_t number = 0;
  std::string told;  ///< warnings, whole lines
};
/// Adds the job and makes sure that it will be started. Error: `failure`, also if it comes after a
/// job that does not exist.
Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment);

}  // namespace berth::jobs
