#include "berth/jobs/task_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "berth/command/messages.h"
#include "berth/job/job_array.h"
#include "berth/jobs/model/job_script.h"
#include "berth/slurm/slurm_values.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

// The file of the script is on this machine only. As a word the text could have things replaced in
// it.
Result<void> bring_script(supervise::RunOptions& options, const JobSpool& spool, std::uint64_t number) {
  BERTH_LET(std::string text, spool.script(number));
  BERTH_LET(std::vector<std::string> words, shell_of_script(text));
  for (const char* word : {"-c", "script=$BERTH_JOB_SCRIPT; unset BERTH_JOB_SCRIPT; eval \"$script\""})
    words.emplace_back(word);
  words.insert(words.end(), options.command.begin(), options.command.end());
  options.command = std::move(words);
  options.hooks.environment.emplace_back("BERTH_JOB_SCRIPT", std::move(text));
  return {};
}

Result<std::vector<std::string>> words_of(const JobSpool& spool, TaskId id, const Job& job) {
  std::vector<std::string> words = job.words;
  if (job.has_script) words.front() = spool.script_path(id.job);
  if (!id.index) return words;
  if (!job.lines_of.empty()) {
    BERTH_LET(const std::string lines, spool.script(id.job));
    words.emplace_back(line_of(lines, *id.index));
  }
  fill_in_task(words, job, *id.index);
  return words;
}

std::vector<std::pair<std::string, std::string>> variables_of(TaskId id, const Job& job) {
  std::vector<std::pair<std::string, std::string>> variables{{"BERTH_JOB", to_text(id)},
                                                             {"BERTH_JOB_NAME", job.name}};
  if (job.slurm) {
    // A number, also for a task: scripts count with it.
    const std::string number = std::to_string(id.job);
    variables.insert(variables.end(),
                     {{"SLURM_JOB_ID", number}, {"SLURM_JOBID", number}, {"SLURM_JOB_NAME", job.name}});
    if (id.index)
      variables.insert(variables.end(),
                       {{"SLURM_ARRAY_JOB_ID", number}, {"SLURM_ARRAY_TASK_ID", std::to_string(*id.index)}});
  }
  if (!id.index) return variables;
  variables.emplace_back("BERTH_ARRAY_INDEX", std::to_string(*id.index));
  for (const auto& [name, value] : params_of(job, *id.index))
    variables.emplace_back("BERTH_PARAM_" + name, value);
  return variables;
}

}  // namespace

Result<void> fill_in_command(supervise::RunOptions& options, const JobSpool& spool, TaskId id, const Job& job,
                             bool is_far) {
  BERTH_LET(options.command, words_of(spool, id, job));
  if (is_far && job.has_script) BERTH_DO(bring_script(options, spool, id.job));
  for (auto& variable : variables_of(id, job)) options.hooks.environment.push_back(std::move(variable));
  return {};
}

Result<void> send_output(TaskId id, const Job& job) {
  struct stat kept{};
  const bool is_first = ::fstat(STDOUT_FILENO, &kept) == 0 && kept.st_size == 0;
  const auto open_file = [&](const std::string& pattern) -> Result<sys::Descriptor> {
    if (pattern.empty()) return sys::Descriptor();
    const std::string name = filled_slurm_pattern(pattern, id, job.name, sys::user_name(::geteuid()));
    // A second run appends to the output of the first.
    sys::Descriptor file(::open(
        name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | (is_first ? O_TRUNC : 0), 0666));
    if (!file) return sys::fail_errno(fmt::format("opening {} in {} for the output", name, job.folder));
    command::print_message(
        fmt::format("what the job prints{} is in {}", &pattern == &job.error_to ? " as errors" : "", name));
    return file;
  };
  BERTH_LET(const auto output, open_file(job.output_to));
  BERTH_LET(const auto errors, open_file(job.error_to));
  if (output && ::dup2(output.get(), STDOUT_FILENO) < 0) return sys::fail_errno("sending the output");
  const int error_file = errors ? errors.get() : output ? output.get() : STDERR_FILENO;
  if (::dup2(error_file, STDERR_FILENO) < 0) return sys::fail_errno("sending the errors");
  return {};
}

}  // namespace berth::jobs
