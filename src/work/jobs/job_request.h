#pragma once

#include <string>
#include <vector>

#include "berth/hosts/lab_hosts.h"
#include "berth/job/stored_request.h"
#include "berth/supervise/lease_options.h"

namespace berth::jobs {

/// What a job asks for, as the options of commands have it.
struct JobRequest {
  supervise::LeaseOptions lease;
  command::FarOptions far;
};

/// Adds the options of `berth run` that a job keeps.
void add_job_request(command::Syntax& syntax, JobRequest& request);

/// REQUIRES: settle.
StoredRequest stored_of(const JobRequest& request);
/// The other direction, settled. Error: `usage`; `failure` if a newer Berth has written it.
Result<JobRequest> request_of(const StoredRequest& stored);
/// Of such options as a user types them. Error: `usage`, as on the command line.
Result<StoredRequest> stored_from_options(const std::vector<std::string>& options);

/// Settles what depends on several options. Error: `usage`.
Result<void> settle(JobRequest& request);

}  // namespace berth::jobs
