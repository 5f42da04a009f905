// An option of Slurm's becomes one of `berth submit`, so that there is one way to submit. What both
// the script and the command line say is told apart by its name alone, as in Slurm: the command
// line counts.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/jobs/add_job.h"
#include "berth/jobs/model/submit_rules.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/submission.h"
#include "berth/slurm/sbatch_options.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSbatchAbout =
    "Submits a script with #SBATCH lines as `berth submit` would a script with #BERTH lines, and prints "
    "`Submitted batch job N`. Without FILE, or for -, it reads the script from the input. Options on the "
    "command line count more than those of the script. The job also gets SLURM_JOB_ID, SLURM_JOB_NAME, "
    "SLURM_SUBMIT_DIR, SLURM_JOB_NODELIST, SLURM_GPUS_ON_NODE, SLURM_NTASKS, SLURM_PROCID, "
    "SLURM_CPUS_PER_TASK and, as a task of an array, SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID.\n"
    "\n"
    "    berth sbatch train.sh\n"
    "    berth sbatch --gres=gpu:2 --time=2:00:00 train.sh\n"
    "    berth sbatch --array=0-9%4 sweep.sh\n"
    "\n"
    "Without --output, Berth keeps what the job prints, and `berth log N` shows it. What means nothing on "
    "one machine is named and not kept; what cannot be done is refused.";

std::string_view group_of(SlurmUse use) {
  switch (use) {
    case SlurmUse::kept:
      return jobs::kJobGroup;
    case SlurmUse::not_kept:
      return "Accepted, but not kept";
    case SlurmUse::refused:
      return "Refused";
  }
  return "";
}

using Values = std::map<std::string, std::string, std::less<>>;

command::Syntax slurm_syntax(Values& values) {
  command::Syntax syntax;
  syntax.arguments = "[FILE [ARG...]]";
  syntax.about = kSbatchAbout;
  syntax.options_end_at_first_word = true;
  for (const SlurmOption& each : slurm_options()) {
    syntax.option(
        group_of(each.use), each.name, each.value, each.help,
        [&each, &values](std::string_view value) -> Result<void> {
          if (each.use == SlurmUse::refused)
            return fail(ErrorCode::usage, "Berth cannot do this: {}", each.help);
          values.insert_or_assign(std::string(each.name), std::string(value));
          return {};
        },
        each.letter);
  }
  return syntax;
}

Result<Values> values_in_script(std::string_view name, std::string_view text) {
  BERTH_LET(const auto lines, options_in_job_script(name, text, kSlurmScriptMark));
  Values values;
  const command::Syntax syntax = slurm_syntax(values);
  for (const JobScriptLine& line : lines) {
    const auto parsed = parse(syntax, "berth sbatch", line.words);
    if (!parsed) return std::unexpected(context(parsed.error(), line.where));
    if (!parsed->words.empty())
      return fail(ErrorCode::usage, "{}: {} is no option", line.where, printable(parsed->words.front()));
  }
  return values;
}

Result<std::string> folder_to_run_in(std::string_view path) {
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(std::string(path).c_str(), nullptr),
                                                          &std::free);
  struct stat status{};
  if (!whole || ::stat(whole.get(), &status) != 0 || !S_ISDIR(status.st_mode))
    return fail(ErrorCode::usage, "--chdir {}: there is no such folder", printable(path));
  return std::string(whole.get());
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

void set_variable(std::vector<std::string>& environment, std::string variable) {
  std::erase_if(environment, [&](const std::string& other) { return name_of(other) == name_of(variable); });
  environment.push_back(std::move(variable));
}

// Variables that a program needs to run at all, and those with which Berth itself was called.
bool is_kept_anyway(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "LD_LIBRARY_PATH"});
  return name.starts_with("BERTH_") || name.starts_with("XDG_") ||
         std::ranges::find(kNames, name) != kNames.end();
}

Result<std::vector<std::string>> environment_of(const SlurmWish& wish, const jobs::Submission& submission) {
  std::vector<std::string> environment = jobs::environment_of_job(submission.job);
  if (wish.exported) {
    const SlurmExport exported = export_from_slurm(*wish.exported);
    if (!exported.all)
      std::erase_if(environment, [&](const std::string& variable) {
        const std::string_view name = name_of(variable);
        return !is_kept_anyway(name) && std::ranges::find(exported.names, name) == exported.names.end();
      });
    for (const std::string& value : exported.values) set_variable(environment, value);
  }
  BERTH_LET(const std::string here, sys::current_folder());
  set_variable(environment, "SLURM_SUBMIT_DIR=" + here);
  set_variable(environment, "SLURM_JOB_NODELIST=" + sys::host_name());
  set_variable(environment, fmt::format("SLURM_GPUS_ON_NODE={}", submission.request.lease.count));
  set_variable(environment, "SLURM_NTASKS=1");
  set_variable(environment, "SLURM_PROCID=0");
  if (wish.cpus) set_variable(environment, "SLURM_CPUS_PER_TASK=" + *wish.cpus);
  return environment;
}

// Where Slurm is installed, srun is its own affair.
Result<void> check_srun(std::string_view name, std::string_view script) {
  const unsigned line = line_with_srun(script);
  if (line == 0 || !sys::cannot_start({"srun"})) return {};
  return fail(ErrorCode::usage,
              "{}, line {}: srun would fail, because this machine has no Slurm; Berth runs the script "
              "as one task: leave out srun and its options, or write above the line: "
              "srun() {{ \"$@\"; }}",
              printable(name), line);
}

class Sbatch : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = slurm_syntax(typed_); }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    const std::string file = words.empty() ? "-" : words.front();
    // A script says nothing of what stands in its place.
    BERTH_LET(const SlurmWish typed, wish_of(typed_));
    BERTH_LET(const std::string script, script_of(file, words, typed.command));
    const std::string told = file == "-" ? "the script on the input" : file;
    BERTH_LET(const Values in_script, values_in_script(told, script));
    BERTH_DO(check_srun(told, script));
    Values values = typed_;
    values.insert(in_script.begin(), in_script.end());
    values.emplace("job-name", default_name(file, typed));

    BERTH_LET(const SlurmWish wish, wish_of(values));
    BERTH_LET(jobs::Submission submission, jobs::submission_of(wish.options));
    Job& job = submission.job;
    job.slurm = true;
    job.has_script = true;
    job.words = words.empty() ? std::vector{file} : words;
    job.output_to = wish.output_to;
    job.error_to = wish.error_to;
    if (wish.folder) {
      BERTH_LET(job.folder, folder_to_run_in(*wish.folder));
    }
    BERTH_LET(const auto variables, environment_of(wish, submission));
    BERTH_DO(check_possible_here(environment, submission));
    name_devices_by_uuid(environment, submission);
    BERTH_LET(jobs::KeptJob kept, jobs::keep_job(job, script, variables, submission.hold));

    command::Output output;
    if (!wish.not_kept.empty()) output.err = command::as_lines(wish.not_kept);
    output.err += kept.told;
    output.out = wish.number_alone ? fmt::format("{}\n", kept.number)
                                   : fmt::format("Submitted batch job {}\n", kept.number);
    output.done = fmt::format("job {} is submitted", kept.number);
    return wish.waits ? end_as(kept.number, job, output) : std::move(output);
  }

 private:
  static Result<SlurmWish> wish_of(const Values& values) {
    return wish_from_slurm({values.begin(), values.end()});
  }

  static Result<std::string> script_of(const std::string& file, const std::vector<std::string>& words,
                                       const std::optional<std::string>& command) {
    if (command) {
      if (!words.empty()) return fail(ErrorCode::usage, "--wrap and a script exclude each other");
      return fmt::format("#!/bin/sh\n{}\n", *command);
    }
    if (words.empty() && ::isatty(STDIN_FILENO) == 1)
      return fail(ErrorCode::usage, "which script? berth sbatch FILE");
    BERTH_LET(auto text, jobs::script_text(file, true));
    return std::move(text).value_or("");
  }

  static std::string default_name(const std::string& file, const SlurmWish& typed) {
    if (typed.command) return "wrap";
    return file == "-" ? "sbatch" : file.substr(file.rfind('/') + 1);
  }

  // Its number is of use while it runs.
  static Result<command::Output> end_as(std::uint64_t number, const Job& job, const command::Output& output) {
    BERTH_DO(command::write_log(output.out));
    command::write_error(output.err);
    BERTH_LET(const auto spool, jobs::make_spool());
    BERTH_LET(auto end, jobs::wait_for_jobs(spool, {{number, job}}));
    return command::Output{.err = std::move(end.told), .status = end.status};
  }

  Values typed_;
};

}  // namespace

BERTH_COMMAND(make_sbatch, Sbatch);

}  // namespace berth::cli
