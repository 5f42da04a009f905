#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/command/environment.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/job/job.h"
#include "berth/supervise/take_lease.h"

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

inline constexpr std::string_view kJobGroup = "The job";

/// A job as its command line, or the lines of its script, describe it.
struct Submission {
  Job job;
  JobRequest request;
  bool hold = false;  ///< it does not start until its user lets it go
};

/// Adds the options that say how to run each task of a job, including those of its request.
void add_task_options(command::Syntax& syntax, Submission& submission);
/// Adds the options of `berth submit`.
void add_submit_options(command::Syntax& syntax, Submission& submission);

/// Reads options of `berth submit` into the submission. Error: `usage`.
Result<void> read_options(Submission& submission, const std::vector<std::string>& options);

/// Checks all options together, and gives the job its request. Error: `usage`.
Result<void> settle(Submission& submission);

/// Puts UUIDs in the place of the indices by which the job asks for devices: it may start after a
/// card has gone, and an index then means another one. A job for other hosts stays as it is, and so
/// does every job if the machine cannot be looked at.
void name_devices_by_uuid(command::Environment& environment, Submission& submission);

/// Refuses a job that this machine could never start, as `berth run` does. A job for other hosts
/// passes, and so does every job if the machine cannot be looked at. Error: `impossible`, with the
/// reasons of all devices; `usage`.
Result<void> check_possible_here(command::Environment& environment, const Submission& submission);

/// The submission that these options of `berth submit` mean, settled. Error: `usage`.
Result<Submission> submission_of(const std::vector<std::string>& options);

/// The text of the named script; "-": the script on standard input. nullopt, unless
/// `must_be_script`: the file is no script, or cannot be read. Error: `usage`, `failure`.
Result<std::optional<std::string>> script_text(const std::string& name, bool must_be_script);

}  // namespace berth::jobs
