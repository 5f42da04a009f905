#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/units.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/jobs/job_runner.h"
#include "berth/jobs/logout_warning.h"
#include "berth/jobs/model/job_script.h"
#include "berth/jobs/new_job.h"
#include "berth/supervise/command_hint.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"
#include "berth/sys/system_error.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSubmitAbout =
    "Stores COMMAND as a job, with its folder and its environment, prints the number of the job, and "
    "ends. The job runs when it is its turn in the queue and its GPUs are free, as with `berth run`, "
    "even if you have logged out. `berth log JOB` shows its output. Options end at the first word of "
    "COMMAND.\n"
    "\n"
    "    berth submit -J train -- python train.py\n"
    "    for i in $(seq 40); do berth submit -- python train.py $i; done\n"
    "    berth submit --array 0-99%4 -- python train.py --seed {index}\n"
    "    berth submit --param lr=0.1,0.01 -- python train.py --lr {lr}\n"
    "    berth jobs\n"
    "\n"
    "A task of an array has its index in BERTH_ARRAY_INDEX and, in the words of COMMAND, as {index}. A "
    "parameter is {NAME} in the words and BERTH_PARAM_NAME in the environment. If COMMAND is a script with "
    "lines such as `#BERTH --array 0-9`, Berth keeps a copy of it and takes options from these lines; "
    "options on the command line count more. - reads a script from standard input.\n"
    "\n"
    "Of your jobs with the same request, one stands in the queue of the machine at a time, so nobody "
    "waits behind all of them. A job runs at most once; one that was cut off by kill -9 or a reboot "
    "is `interrupted`.";

constexpr std::size_t kLongestScript = 1 << 20;

Result<void> read_array(Job& job, std::string_view value) {
  if (const std::size_t percent = value.find('%'); percent != std::string_view::npos) {
    BERTH_LET(job.at_once, number_at_least(value.substr(percent + 1), 1));
    value = value.substr(0, percent);
  }
  BERTH_DO(indices_from_text(value));
  job.array = value;
  return {};
}

Option jobs_option(std::string_view name, std::string_view help, std::vector<std::uint64_t>& numbers) {
  return {kJobGroup, 0, name, "JOB,...", help, {}, [&numbers](std::string_view value) -> Result<void> {
            for (const std::string_view part : parts_of(value)) {
              const auto id = task_id_from_text(part);
              if (!id || id->index) return fail(ErrorCode::usage, "must be numbers of jobs: 12 or 12,13");
              numbers.push_back(id->job);
            }
            return {};
          }};
}

// "22:00" is the next time that the clock says so; a span counts from now.
Result<std::int64_t> moment_from_text(std::string_view text) {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
  const std::size_t colon = text.find(':');
  if (const auto number = number_from_text<int>(text); number && *number >= 0 && *number <= 23)
    return fail(ErrorCode::usage, fmt::format("{0} of what? write {0}:00 or {0}h", *number));
  if (colon == std::string_view::npos) {
    BERTH_LET(const auto seconds, seconds_from_text(text));
    BERTH_DO(check_time(seconds));
    return now + seconds;
  }
  const auto hour = number_from_text<int>(text.substr(0, colon));
  const auto minute = number_from_text<int>(text.substr(colon + 1));
  if (!hour || !minute || *hour < 0 || *hour > 23 || *minute < 0 || *minute > 59)
    return fail(ErrorCode::usage, "must be a time of the day such as 22:00, or a span such as 2h");
  const std::time_t start = now;
  std::tm local{};
  ::localtime_r(&start, &local);
  local.tm_hour = *hour;
  local.tm_min = *minute;
  local.tm_sec = 0;
  local.tm_isdst = -1;
  std::tm next = local;
  const std::int64_t today = ::mktime(&local);
  if (today > now) return today;
  ++next.tm_mday;
  return ::mktime(&next);
}

void add_submit_options(Syntax& syntax, Submission& submission, std::vector<std::string>& given) {
  Job& job = submission.job;
  syntax.options.push_back({kJobGroup,
                            'a',
                            "array",
                            "LIST",
                            "a task for each index: 0-99, 1,4,7-9; 0-99%4: four at once at most",
                            {},
                            [&job](std::string_view value) { return read_array(job, value); }});
  syntax.options.push_back({kJobGroup,
                            0,
                            "param",
                            "NAME=LIST",
                            "a task for each value, as {NAME} in COMMAND; several: for each combination",
                            {},
                            [&job](std::string_view value) -> Result<void> {
                              job.params.emplace_back(value);
                              return check_array(job);
                            }});
  syntax.options.push_back(jobs_option("after", "run it when these jobs are over", job.after));
  syntax.options.push_back(
      jobs_option("after-ok", "run it when they have ended with status 0, else cancel it", job.after_ok));
  syntax.options.push_back({kJobGroup,
                            0,
                            "at",
                            "TIME",
                            "not before then: 22:00, or 2h from now",
                            {},
                            [&job](std::string_view value) -> Result<void> {
                              BERTH_LET(job.not_before_s, moment_from_text(value));
                              return {};
                            }});
  add_task_options(syntax, submission, given);
}

Result<void> parse_again(Submission& submission, const std::vector<std::string>& options) {
  Syntax syntax;
  add_submit_options(syntax, submission, submission.job.request);
  std::vector<std::string> copies = options;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  BERTH_DO(parse(syntax, "berth submit", words));
  return {};
}

Result<void> parse_script(Submission& submission, std::string_view name, std::string_view text) {
  BERTH_LET(const auto lines, options_in_job_script(name, text));
  for (const JobScriptLine& line : lines) {
    if (const auto taken = parse_again(submission, line.words); !taken)
      return std::unexpected(context(taken.error(), line.place));
  }
  return {};
}

class Submit : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.arguments = "[--] COMMAND [ARG...]";
    syntax.about = kSubmitAbout;
    syntax.options_end_at_first_word = true;
    add_submit_options(syntax, typed_, typed_.job.request);
    // A script says less than the command line: its options are read before, once it is known which script.
    for (Option& option : syntax.options) {
      option.set = [this, set = std::move(option.set), name = option.name, flag = option.value.empty(),
                    optional = option.value.starts_with('[')](std::string_view value) -> Result<void> {
        BERTH_DO(set(value));
        options_.push_back(flag || (optional && value.empty()) ? fmt::format("--{}", name)
                                                               : fmt::format("--{}={}", name, value));
        return {};
      };
    }
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>& words) override {
    if (words.empty())
      return fail(ErrorCode::usage,
                  "submit which command? berth submit [OPTIONS] -- COMMAND [ARG...]; - reads a script from "
                  "the input");
    BERTH_LET(const auto script, script_of(words));
    Submission submission;
    if (script) {
      BERTH_DO(parse_script(submission, words.front() == "-" ? "the script on the input" : words.front(),
                            *script));
      BERTH_DO(parse_again(submission, options_));
      submission.job.has_script = true;
    } else {
      BERTH_DO(parse_again(submission, options_));
      // Two hours in line are a bad way to learn of a misspelt word. What another host has is not known here.
      const auto missing = submission.request.far.hosts.anywhere ? std::nullopt : sys::cannot_start(words);
      if (missing)
        return Output{.err = as_lines({missing->message + command_hint(words, "submit")}),
                      .status = missing->exit_status};
    }
    BERTH_DO(settle(submission));
    if (script && submission.request.far.hosts.anywhere) BERTH_DO(shell_of_script(*script));
    BERTH_DO(check_possible_here(environment, submission));
    submission.job.words = words;
    const std::vector<std::string> variables = environment_of_job(submission.job);
    BERTH_LET(auto kept, keep_job(std::move(submission.job), script.value_or(""), variables));
    return Output{.out = submitted_in_words(kept.number), .err = std::move(kept.told)};
  }

 private:
  // Scripts read the number alone.
  static std::string submitted_in_words(std::uint64_t number) {
    if (::isatty(STDOUT_FILENO) != 1) return fmt::format("{}\n", number);
    return fmt::format(
        "submitted job {0}: `berth jobs` shows it, `berth log -f {0}` what it prints, and `berth cancel {0}` "
        "ends it\n",
        number);
  }

  // nullopt: the first word is a command. What is a script is kept as it is now: it may be edited while the
  // job waits.
  static Result<std::optional<std::string>> script_of(const std::vector<std::string>& words) {
    const bool input = words.front() == "-";
    BERTH_LET(auto text, script_text(words.front(), input));
    const bool marked = text && text->find(fmt::format("\n{}", kJobScriptMark)) != std::string::npos;
    if (!input && !marked) text.reset();
    return text;
  }

  Submission typed_;                  ///< to tell at once what is wrong with it
  std::vector<std::string> options_;  ///< as typed
};

}  // namespace

Result<Submission> submission_of(const std::vector<std::string>& options) {
  Submission submission;
  BERTH_DO(parse_again(submission, options));
  BERTH_DO(settle(submission));
  return submission;
}

Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment) {
  BERTH_LET(auto spool, make_spool());
  // Only jobs that are there already: so none can wait for itself, by whatever way.
  for (const auto* list : {&job.after, &job.after_ok}) {
    for (const std::uint64_t other : *list) {
      BERTH_LET(const auto there, spool.job(other));
      if (!there)
        return fail(
            ErrorCode::failure,
            fmt::format("there is no job {} to come after; `berth jobs` shows those there are", other));
    }
  }
  KeptJob kept;
  BERTH_LET(kept.number, add_job(spool, std::move(job), script, environment));
  // Once a call is enough for who looks on; in a script it would be noise.
  if (const auto warning = ::isatty(STDERR_FILENO) == 1 ? logout_warning() : std::nullopt)
    kept.told = as_lines({fmt::format("warning: {}; {}", warning->what, warning->advice)});
  if (const auto runner = ensure_runner(spool, {kept.number, {}}); !runner)
    kept.told += as_lines({fmt::format("job {} is kept, and waits until `berth jobs` can start a runner: {}",
                                       kept.number, runner.error().message)});
  return kept;
}

Result<std::optional<std::string>> script_text(const std::string& name, bool must_be_script) {
  const bool input = name == "-";
  const std::string told = input ? "the script on the input" : "the script " + printable(name);
  const sys::Descriptor file(input ? ::dup(STDIN_FILENO)
                                   : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && must_be_script) return sys::fail_errno("reading " + told);
  std::string text;
  std::array<char, 1 << 14> buffer;
  while (file) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && must_be_script) return sys::fail_errno("reading " + told);
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (!must_be_script && !text.starts_with("#!")) return std::nullopt;
    if (text.size() > kLongestScript) {
      if (!must_be_script) return std::nullopt;
      return fail(ErrorCode::usage, told + " is longer than 1 MiB");
    }
  }
  if (input && text.empty())
    return fail(ErrorCode::usage, "which script? The input is empty: name a file, as in berth sbatch FILE");
  if (!text.starts_with("#!")) {
    if (!must_be_script) return std::nullopt;
    return fail(ErrorCode::usage, fmt::format("{} begins with the program that runs it: #!/bin/bash",
                                              input ? "a script on the input" : told));
  }
  // Its interpreter would be looked for under a name that ends in a carriage return, when it is its turn.
  if (text.find('\n') != std::string::npos && text[text.find('\n') - 1] == '\r')
    return fail(ErrorCode::usage,
                fmt::format("the lines of {0} end as on Windows; `sed -i 's/\\r$//' {0}` mends that",
                            input ? "the script" : printable(name)));
  return text;
}

std::unique_ptr<Command> make_submit() {
  return std::make_unique<Submit>();
}

}  // namespace berth::cli
