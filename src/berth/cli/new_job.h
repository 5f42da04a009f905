#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/cli/job_request.h"
#include "berth/store/job_spool.h"

namespace berth::cli {

inline constexpr std::string_view kJobGroup = "The job";

/// What the command line of a job says, or the lines of its script.
struct Submission {
  Job job;
  JobRequest request;
};

/// The options that say how each task of a job is run, those of its request included. What is given of the
/// request is also added to `given`, as `add_job_request` does.
void add_task_options(Syntax& syntax, Submission& submission, std::vector<std::string>& given);

/// What options of `berth submit` say, settled. Error: `usage`.
Result<Submission> submission_of(const std::vector<std::string>& options);

/// The parts of "a,b,c".
std::vector<std::string_view> parts_of(std::string_view list);

/// What is wrong with all of it together. Error: `usage`.
Result<void> settle(Submission& submission);

/// Where this process is, which is where a job runs. Error: `failure`.
Result<std::string> current_folder();

/// This user's jobs on this machine, to add some.
Result<store::JobSpool> make_spool();

/// The environment that a job which is submitted here gets.
std::vector<std::string> environment_of_job(const Job& job);

/// Adds the job, to be run in its folder, else in this one, and gives its number. `environment`: that it
/// gets. `script`: as JobSpool::add has it.
Result<std::uint64_t> add_job(store::JobSpool& spool, Job job, std::string_view script,
                              const std::vector<std::string>& environment);
/// The same with the environment of this process.
Result<std::uint64_t> add_job(store::JobSpool& spool, Job job, std::string_view script);

/// The text of the script that was named, "-" for that on the input. nullopt: it is no script, or cannot be
/// read, where it need not be one. Error: `usage`, `failure`.
Result<std::optional<std::string>> script_text(const std::string& name, bool must_be_script);

/// A job that was submitted.
struct KeptJob {
  std::uint64_t number = 0;
  std::string told;  ///< warnings, whole lines
};
/// Adds the job and sees to it that it will be started. Error: `failure`, also where a job that it comes
/// after is not there.
Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment);

}  // namespace berth::cli
