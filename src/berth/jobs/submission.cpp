#include "berth/jobs/submission.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <utility>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/command/messages.h"
#include "berth/jobs/logout_warning.h"
#include "berth/jobs/runner.h"
#include "berth/sys/clock.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

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

command::Option jobs_option(std::string_view name, std::string_view help,
                            std::vector<std::uint64_t>& numbers) {
  return {kJobGroup, name, "JOB,...", help, [&numbers](std::string_view value) -> Result<void> {
            for (const std::string_view part : parts_at(value, ',')) {
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
    return fail(ErrorCode::usage, "{0} of what? write {0}:00 or {0}h", *number);
  const auto not_a_time = [] {
    return fail(ErrorCode::usage, "must be a time of the day such as 22:00, or a span such as 2h");
  };
  if (colon == std::string_view::npos) {
    const bool begins_as_span = !text.empty() && text.front() >= '0' && text.front() <= '9';
    if (!begins_as_span) return not_a_time();
    BERTH_LET(const auto seconds, seconds_from_text(text));
    BERTH_DO(check_time(seconds));
    return now + seconds;
  }
  const auto hour = number_from_text<int>(text.substr(0, colon));
  const auto minute = number_from_text<int>(text.substr(colon + 1));
  if (!hour || !minute || *hour < 0 || *hour > 23 || *minute < 0 || *minute > 59) return not_a_time();
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

}  // namespace

void add_submit_options(command::Syntax& syntax, Submission& submission) {
  Job& job = submission.job;
  syntax.option(
      kJobGroup, "array", "LIST", "a task for each index: 0-99, 1,4,7-9; 0-99%4: four at once at most",
      [&job](std::string_view value) { return read_array(job, value); }, 'a');
  syntax.option(kJobGroup, "param", "NAME=LIST",
                "a task for each value, as {NAME} in COMMAND; several: for each combination",
                [&job](std::string_view value) -> Result<void> {
                  job.params.emplace_back(value);
                  return check_array(job);
                });
  syntax.add(jobs_option("after", "run it when these jobs are over", job.after));
  syntax.add(
      jobs_option("after-ok", "run it when they have ended with status 0, else cancel it", job.after_ok));
  syntax.add(
      jobs_option("after-any", "run it when they have ended, however: the same as --after", job.after));
  syntax.add(jobs_option("after-fail", "run it when they have ended, none with status 0, else cancel it",
                         job.after_fail));
  syntax.flag(kJobGroup, "singleton", "with --job-name: one job of yours with this name at a time",
              job.singleton);
  syntax.option(kJobGroup, "at", "TIME", "not before then: 22:00, or 2h from now",
                command::into(job.not_before_s, moment_from_text));
  syntax.flag(kJobGroup, "tty", "give it a terminal, to which `berth attach JOB` connects yours", job.tty);
  add_task_options(syntax, submission);
}

Result<void> read_options(Submission& submission, const std::vector<std::string>& options) {
  command::Syntax syntax;
  add_submit_options(syntax, submission);
  BERTH_DO(parse(syntax, "berth submit", options));
  return {};
}

Result<Submission> submission_of(const std::vector<std::string>& options) {
  Submission submission;
  BERTH_DO(read_options(submission, options));
  BERTH_DO(settle(submission));
  return submission;
}

Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment) {
  BERTH_LET(auto spool, make_spool());
  // Only jobs that are there already: so none can wait for itself, by whatever way.
  for (const auto* list : {&job.after, &job.after_ok, &job.after_fail}) {
    for (const std::uint64_t other : *list) {
      BERTH_LET(const auto there, spool.job(other));
      if (!there)
        return fail(ErrorCode::failure,
                    "there is no job {} to come after; `berth jobs` shows those there are", other);
    }
  }
  KeptJob kept;
  BERTH_LET(kept.number, add_job(spool, std::move(job), script, environment));
  // Once a call is enough for who looks on; in a script it would be noise.
  if (const auto warning = ::isatty(STDERR_FILENO) == 1 ? logout_warning() : std::nullopt)
    kept.told = command::as_lines({fmt::format("warning: {}; {}", warning->what, warning->advice)});
  if (const auto runner = ensure_runner(spool, {kept.number, {}}); !runner)
    kept.told +=
        command::as_lines({fmt::format("job {} is kept, and waits until `berth jobs` can start a runner: {}",
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
    return fail(ErrorCode::usage, "{} begins with the program that runs it: #!/bin/bash",
                input ? "a script on the input" : told);
  }
  // Its interpreter would be looked for under a name that ends in a carriage return, when it is its
  // turn.
  if (text.find('\n') != std::string::npos && text[text.find('\n') - 1] == '\r')
    return fail(ErrorCode::usage, "the lines of {0} end as on Windows; `sed -i 's/\\r$//' {0}` mends that",
                input ? "the script" : printable(name));
  return text;
}

}  // namespace berth::jobs
