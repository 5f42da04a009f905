#pragma once

#include <string>
#include <vector>

#include "berth/cli/anywhere.h"
#include "berth/cli/lease_options.h"

namespace berth::cli {

/// What a job asks for: which GPUs, and of which hosts.
struct JobRequest {
  LeaseOptions lease;
  FarOptions far;
};

/// Adds those options of `berth run` that a job keeps. What is given of them is also added to `given`, as
/// words that read_job_request reads.
void add_job_request(Syntax& syntax, JobRequest& request, std::vector<std::string>& given);

/// The request of a job, settled. Error: `usage`, as on the command line.
Result<JobRequest> read_job_request(const std::vector<std::string>& given);

/// What depends on several of its options. Error: `usage`.
Result<void> settle(JobRequest& request);

}  // namespace berth::cli
