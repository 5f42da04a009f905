#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/jobs/new_job.h"

namespace berth::jobs {

/// Adds the options of `berth submit`.
void add_submit_options(command::Syntax& syntax, Submission& submission);

/// Reads options of `berth submit` into the submission. Error: `usage`.
Result<void> read_options(Submission& submission, const std::vector<std::string>& options);

/// The submission that these options of `berth submit` mean, settled. Error: `usage`.
Result<Submission> submission_of(const std::vector<std::string>& options);

/// The text of the named script; "-": the script on standard input. nullopt, unless
/// `must_be_script`: the file is no script, or cannot be read. Error: `usage`, `failure`.
Result<std::optional<std::string>> script_text(const std::string& name, bool must_be_script);

/// A job that was submitted.
struct KeptJob {
  std::uint64_t number = 0;
  std::string told;  ///< warnings, whole lines
};
/// Adds the job and makes sure that it will be started. Error: `failure`, also if it comes after a
/// job that does not exist.
Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment);

}  // namespace berth::jobs
