#include "berth/jobs/task_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/command/environment.h"
#include "berth/job/job.h"
#include "berth/jobs/model/submit_rules.h"
#include "berth/slurm/sbatch_options.h"
#include "berth/sys/file.h"

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

namespace {

Result<void> overwrite(int file, std::string_view text, off_t at) {
  const ssize_t written = ::pwrite(file, text.data(), text.size(), at);
  if (written < 0) return sys::fail_errno("writing into the output");
  if (written != std::ssize(text))
    return std::unexpected(sys::system_error(ENOSPC, "writing into the output"));
  return {};
}

}  // namespace

Result<OutputBound> OutputBound::open(const std::string& path, std::uint64_t limit) {
  sys::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return sys::fail_errno("opening " + path);
  return OutputBound(std::move(file), limit);
}

// The file itself says it, so that a task that is run again, or looked after by another process,
// goes on.
OutputCut OutputBound::cut_so_far(std::uint64_t size) const {
  const std::uint64_t begin = cut_begin(limit_);
  if (size <= begin) return {};
  const off_t data = ::lseek(file_.get(), static_cast<off_t>(begin), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? OutputCut{begin, size} : OutputCut{};
  return {begin, static_cast<std::uint64_t>(data)};
}

Result<std::uint64_t> OutputBound::keep() {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return sys::fail_errno("examining the output");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size <= limit_) return 0;
  const OutputCut so_far = cut_so_far(size);
  const auto cut = next_cut(size, so_far, limit_);
  if (!cut) return bytes_cut(so_far, limit_);
  // The mark first: whoever is killed in between has not cut without a word. What it has replaced
  // comes back if nothing can be cut.
  const std::string mark = cut_mark(*cut, limit_);
  const auto at = static_cast<off_t>(cut->begin - mark.size());
  std::string before(mark.size(), '\0');
  const ssize_t got = ::pread(file_.get(), before.data(), before.size(), at);
  if (got < 0) return sys::fail_errno("reading the output");
  // The job has made its output shorter meanwhile: the next look decides anew.
  if (got != std::ssize(before)) return bytes_cut(so_far, limit_);
  auto done = overwrite(file_.get(), mark, at);
  if (done && ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          static_cast<off_t>(cut->begin), static_cast<off_t>(cut->end - cut->begin)) != 0)
    done = sys::fail_errno("cutting the output, which is not bounded here");
  if (!done) {
    [[maybe_unused]] const auto restored = overwrite(file_.get(), before, at);
    return std::unexpected(done.error());
  }
  return bytes_cut(*cut, limit_);
}

}  // namespace berth::jobs
