#pragma once

#include <string>
#include <vector>

#include "berth/cli/lease_options.h"

namespace berth::cli {

/// Adds those options of `berth run` that a job keeps. What is given of them is also added to `given`, as
/// words that read_job_request reads.
void add_job_request(Syntax& syntax, LeaseOptions& options, std::vector<std::string>& given);

/// The request of a job, settled. Error: `usage`, as on the command line.
Result<void> read_job_request(LeaseOptions& options, const std::vector<std::string>& given);

}  // namespace berth::cli
