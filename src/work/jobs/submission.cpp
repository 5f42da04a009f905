#include "berth/jobs/submission.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

#include "berth/answers/answers.h"
#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/own_terminal.h"
#include "berth/job/job.h"
#include "berth/jobs/send_notice.h"
#include "berth/request/request.h"
#include "berth/slurm/sbatch_options.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/verdict/site_policy.h"

namespace berth::jobs {
namespace {

constexpr std::size_t kLongestScript = 1 << 20;

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
    return of_what(std::to_string(*number), fmt::format("{}:00", *number), fmt::format("{}h", *number));
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

constexpr std::size_t kLongestName = 100;

command::Option number_option(std::string_view name, std::string_view help, unsigned& number) {
  return {kJobGroup, name, "N", help, command::count_into(number)};
}

Result<void> read_statuses(Job& job, std::string_view value) {
  for (const std::string_view part : parts_at(value, ',')) {
    const auto status = number_from_text<int>(part);
    if (!status || *status < 1 || *status > 255)
      return fail(ErrorCode::usage, "must be exit statuses from 1 to 255: 75,137");
    job.retry_on.push_back(*status);
  }
  return {};
}

// A mistake that would keep a job from its start for ever is reported now.
Result<void> check_far(const Submission& submission) {
  const command::FarOptions& far = submission.request.far;
  BERTH_DO(hosts::hosts_meant(far.hosts));
  BERTH_DO(hosts::passed_environment(far.passed_variables, command::own_environment()));
  if (submission.job.not_on_last_device)
    return fail(ErrorCode::usage, "--not-on-last-device and --anywhere exclude each other");
  if (submission.job.requeue || submission.job.rerun)
    return fail(
        ErrorCode::usage,
        "--requeue and --rerun exclude --anywhere: nobody here could know whether what ran on the other "
        "host has ended");
  if (submission.job.tty)
    return fail(ErrorCode::usage,
                "--tty and --anywhere exclude each other: berth attach reaches jobs of this machine only");
  return {};
}

bool starts_later(const Job& job) {
  return job.not_before_s || !job.after.empty() || !job.after_ok.empty() || !job.after_fail.empty() ||
         job.singleton;
}

// A device that is lost now, or was taken out by an admin, may be back by then.
bool may_recover(const leasing::ExplainedRefusal& refusal) {
  const auto away = std::ranges::count_if(refusal.verdicts, [](const Verdict& each) {
    return each.failed == Clause::healthy || each.failed == Clause::not_excluded;
  });
  return std::cmp_greater_equal(refusal.possible + static_cast<std::size_t>(away), refusal.request.count);
}

// Asks where the job will ask.
Result<leasing::Session> session_of_job(command::Environment& environment,
                                        const command::RequestOptions& options) {
  BERTH_LET(auto domain, leasing::find_domain({}));
  if (!sys::variable("BERTH_LEASE").empty()) {
    domain = leasing::machine_around(std::move(domain));
    domain.masks.clear();
  }
  return open_session_at(std::move(domain), environment, options);
}

// The refusal that the job would get whenever it asks. nullopt: its request may be granted.
Result<std::optional<leasing::ExplainedRefusal>> refusal_for_ever(command::Environment& environment,
                                                                  const command::RequestOptions& options) {
  BERTH_LET(const auto session, session_of_job(environment, options));
  const Request& request = options;
  // Its memory is settled when it starts; a whole device is the most.
  return session.never(asks_memory_by_runs(request) ? with_memory(request, std::nullopt) : request);
}

}  // namespace

void add_task_options(command::Syntax& syntax, Submission& submission) {
  Job& job = submission.job;
  syntax.option(
      kJobGroup, "job-name", "NAME", "what it is called in `berth jobs`, `list` and `queue`",
      [&job](std::string_view value) -> Result<void> {
        if (value.empty() || value.size() > kLongestName)
          return fail(ErrorCode::usage, "must have 1 to {} characters", kLongestName);
        job.name = value;
        return {};
      },
      'J');
  syntax.add(number_option("at-once", "at most N of its tasks run at the same time", job.at_once));
  syntax.add(number_option("retries", "run a task again that fails, at most N times", job.retries));
  syntax.option(
      kJobGroup, "retry-on", "LIST",
      "with --retries: only if the exit status is one of these: 75,137 (128 plus the signal that killed it)",
      [&job](std::string_view value) { return read_statuses(job, value); });
  syntax.flag(kJobGroup, "not-on-last-device", "with --retries: run the task on other GPUs than before",
              job.not_on_last_device);
  syntax.flag(kJobGroup, "requeue", "with --yield: run a task again that has given way to another request",
              job.requeue);
  syntax.flag(kJobGroup, "rerun", "run a task again that was cut off by kill -9 or a reboot", job.rerun);
  syntax.option(kJobGroup, "output-limit", "SIZE",
                "what its output may take, 1M at least; more is cut out of the middle (default 1G)",
                [&job](std::string_view value) -> Result<void> {
                  BERTH_LET(const auto bytes, bytes_from_text(value));
                  if (bytes < kLeastOutput) return fail(ErrorCode::usage, "must be 1M at least");
                  job.output_limit = bytes;
                  return {};
                });
  add_notify_options(syntax, kJobGroup, job.notify);
  add_job_request(syntax, submission.request);
}

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
  syntax.flag(kJobGroup, "hold", "it does not start until you say `berth edit JOB --no-hold`",
              submission.hold);
  syntax.option(kJobGroup, "at", "TIME", "not before then: 22:00, or 2h from now",
                command::into(job.not_before_s, moment_from_text));
  syntax.option(
      kJobGroup, "output", "FILE",
      "what it prints goes into this file, and `berth log` has only its name; %A is the number of the job, "
      "%a the index of the task",
      [&job](std::string_view value) -> Result<void> {
        if (value.empty()) return fail(ErrorCode::usage, "must be the name of a file");
        BERTH_DO(check_slurm_pattern(value));
        job.output_to = value;
        return {};
      },
      'o');
  syntax.flag(kJobGroup, "tty", "give it a terminal, to which `berth attach JOB` connects yours", job.tty);
  add_task_options(syntax, submission);
}

Result<void> read_options(Submission& submission, const std::vector<std::string>& options) {
  command::Syntax syntax;
  add_submit_options(syntax, submission);
  BERTH_DO(parse(syntax, "berth submit", options));
  return {};
}

Result<void> settle(Submission& submission) {
  BERTH_DO(settle(submission.request));
  submission.job.request = stored_of(submission.request);
  BERTH_DO(check_array(submission.job));
  BERTH_DO(check(submission.job.notify));
  if (submission.request.far.hosts.anywhere) BERTH_DO(check_far(submission));
  if (submission.job.retries == 0 && (!submission.job.retry_on.empty() || submission.job.not_on_last_device))
    return fail(ErrorCode::usage, "--retry-on and --not-on-last-device say how: --retries says how often");
  if (submission.job.singleton && submission.job.name.empty())
    return fail(ErrorCode::usage, "--singleton is about the jobs of one name: add --job-name");
  if (submission.job.tty && !submission.job.output_to.empty())
    return fail(ErrorCode::usage,
                "--tty and --output exclude each other: what it shows on its terminal is kept");
  if (submission.job.requeue && !submission.request.lease.yield_s)
    return fail(
        ErrorCode::usage,
        "--requeue is for jobs that yield: add --yield; --rerun runs a job again that a reboot or kill "
        "-9 cut off");
  return {};
}

void name_devices_by_uuid(command::Environment& environment, Submission& submission) {
  Request& request = submission.request.lease;
  const auto counts = [](const auto& selectors) { return std::ranges::any_of(selectors, counts_devices); };
  if (submission.request.far.hosts.anywhere || (!counts(request.devices) && !counts(request.exclude))) return;
  const auto session = session_of_job(environment, submission.request.lease);
  const auto world = session ? session->look(request) : std::unexpected(session.error());
  environment.end_probe();
  if (!world) return;
  request.devices = as_uuids(request.devices, world->facts.snapshot);
  request.exclude = as_uuids(request.exclude, world->facts.snapshot);
  submission.job.request = stored_of(submission.request);
}

Result<void> check_possible_here(command::Environment& environment, const Submission& submission) {
  if (submission.request.far.hosts.anywhere) return {};
  const auto never = refusal_for_ever(environment, submission.request.lease);
  environment.end_probe();
  if (!never) {
    const bool is_wrong =
        never.error().code == ErrorCode::impossible || never.error().code == ErrorCode::usage;
    return is_wrong ? std::unexpected(never.error()) : Result<void>();
  }
  if (!*never || (starts_later(submission.job) && may_recover(**never))) return {};
  return std::unexpected(answers::in_words(**never, command::Environment::style_of(STDERR_FILENO)));
}

Result<Submission> submission_of(const std::vector<std::string>& options) {
  Submission submission;
  BERTH_DO(read_options(submission, options));
  BERTH_DO(settle(submission));
  return submission;
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

void add_job_request(command::Syntax& syntax, JobRequest& request) {
  supervise::LeaseOptions& options = request.lease;
  add_request_options(syntax, options);
  for (const RequestPart part : {RequestPart::lease, RequestPart::job})
    add_fields(syntax, part, supervise::kLeaseGroup, options);
  syntax.add(supervise::note_option(supervise::kLeaseGroup, options.note));
  add_far_options(syntax, request.far, "on the first host that has the GPUs, through ssh");
}

Result<void> settle(JobRequest& request) {
  BERTH_DO(settle(request.lease));
  return settle(request.far);
}

namespace {

constexpr std::string_view kUuids = "uuid";
constexpr std::string_view kIgnored = "ignore";

}  // namespace

StoredRequest stored_of(const JobRequest& request) {
  const command::RequestOptions& options = request.lease;
  const command::AnywhereOptions& hosts = request.far.hosts;
  StoredRequest stored;
  stored.request = options;
  stored.says_count = options.said_count.has_value();
  stored.note = request.lease.note;
  if (options.uuids) stored.ids = kUuids;
  if (options.mask == MaskUse::ignore) stored.mask = kIgnored;
  if (options.source != source::SourceKind::kAutomatic) stored.source = source::to_text(options.source);
  stored.anywhere = hosts.anywhere;
  stored.hosts = hosts.hosts;
  stored.only = hosts.only;
  stored.without = hosts.without;
  stored.folder = request.far.folder;
  if (request.far.passed_variables != command::FarOptions().passed_variables)
    stored.env = request.far.passed_variables;
  stored.near = request.far.near;
  return stored;
}

Result<JobRequest> request_of(const StoredRequest& stored) {
  JobRequest request;
  command::RequestOptions& options = request.lease;
  static_cast<Request&>(options) = stored.request;
  if (stored.says_count) options.said_count = stored.request.count;
  request.lease.note = stored.note;
  options.uuids = stored.ids == kUuids;
  if (stored.mask == kIgnored) options.mask = MaskUse::ignore;
  if (!stored.source.empty()) {
    const auto source = source::source_kind_from_text(stored.source);
    if (!source)
      return fail(ErrorCode::failure, "the job names the source {}, which this Berth does not know",
                  printable(stored.source));
    options.source = *source;
  }
  request.far = {.hosts = {stored.anywhere, stored.hosts, stored.only, stored.without},
                 .folder = stored.folder,
                 .near = stored.near};
  if (!stored.env.empty()) request.far.passed_variables = stored.env;
  BERTH_DO(settle(request));
  return request;
}

Result<StoredRequest> stored_from_options(const std::vector<std::string>& options) {
  JobRequest request;
  command::Syntax syntax;
  add_job_request(syntax, request);
  BERTH_DO(parse(syntax, "berth submit", options));
  BERTH_DO(settle(request));
  return stored_of(request);
}

}  // namespace berth::jobs
