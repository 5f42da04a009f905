#pragma once

#include <string>
#include <vector>

#include "berth/hosts/anywhere.h"
#include "berth/supervise/lease_options.h"

namespace berth::jobs {

/// The request of a job: which GPUs, and of which hosts.
struct JobRequest {
  supervise::LeaseOptions lease;
  command::FarOptions far;
};

/// Adds the options of `berth run` that a job keeps. Those that the user gives are also added to
/// `given`, as words for read_job_request.
void add_job_request(command::Syntax& syntax, JobRequest& request, std::vector<std::string>& given);

/// The request of a job, settled. Error: `usage`, as on the command line.
Result<JobRequest> read_job_request(const std::vector<std::string>& given);

/// Settles what depends on several options. Error: `usage`.
Result<void> settle(JobRequest& request);

}  // namespace berth::jobs
