#include "berth/jobs/new_job.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "berth/base/fail.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/device/vendor.h"
#include "berth/hosts/passed_environment.h"
#include "berth/jobs/notify.h"
#include "berth/lease/answers.h"
#include "berth/sys/clock.h"
#include "berth/sys/environment.h"
#include "berth/sys/limits.h"

namespace berth::jobs {
namespace {

constexpr std::size_t kLongestName = 100;

// A job is for the machine: what a lease told this process is not for it.
std::set<std::string_view> names_of_a_lease() {
  std::set<std::string_view> names{"BERTH_LEASE", "BERTH_PROMPT"};
  for (const Vendor& vendor : vendors()) {
    names.insert(vendor.mask_variable);
    if (!vendor.order_variable.empty()) names.insert(vendor.order_variable);
  }
  return names;
}

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

// The runner that starts it may be the child of another shell.
void take_from_shell(Job& job) {
  // Nobody can ask for it without setting it.
  job.umask = ::umask(077);
  ::umask(*job.umask);
  job.nice = ::getpriority(PRIO_PROCESS, 0);
  job.limits = sys::soft_limits();
}

bool starts_later(const Job& job) {
  return job.not_before_s || !job.after.empty() || !job.after_ok.empty() || !job.after_fail.empty() ||
         job.singleton;
}

// A device that is lost now, or was taken out by an admin, may be back by then.
bool may_recover(const leasing::Refusal& refusal) {
  const auto away = std::ranges::count_if(refusal.verdicts, [](const Verdict& each) {
    return each.failed == Clause::healthy || each.failed == Clause::not_excluded;
  });
  return std::cmp_greater_equal(refusal.possible + static_cast<std::size_t>(away), refusal.request.count);
}

// Asked where the job will ask. nullopt: the request may be granted.
Result<std::optional<leasing::Refusal>> refusal_for_ever(command::Environment& environment,
                                                         const command::RequestOptions& options) {
  BERTH_LET(auto domain, leasing::find_domain({}));
  if (!command::variable("BERTH_LEASE").empty()) {
    domain = leasing::machine_around(std::move(domain));
    domain.masks.clear();
  }
  BERTH_LET(const auto session, open_session_at(std::move(domain), environment, options));
  const Request& request = options.request;
  // Its memory is settled when it starts; a whole device is the most.
  return session.never(asks_memory_by_runs(request) ? with_memory(request, std::nullopt) : request);
}

}  // namespace

// Jobs are rivals of each other that ask for the same, at the same place and under the same masks.
std::string rivals_of(const StoredRequest& request, const std::vector<std::string>& environment) {
  std::set<std::string_view> telling = names_of_a_lease();
  telling.insert("BERTH_DIR");
  std::string text;
  for (const std::string& option : typed_options(request)) text += option + "\n";
  for (const std::string& each : environment) {
    if (telling.contains(std::string_view(each).substr(0, each.find('=')))) text += each + "\n";
  }
  return text;
}

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

Result<void> settle(Submission& submission) {
  BERTH_DO(settle(submission.request));
  submission.job.request = stored_of(submission.request);
  BERTH_DO(check_array(submission.job));
  if (submission.request.far.hosts.anywhere) BERTH_DO(check_far(submission));
  if (submission.job.retries == 0 && (!submission.job.retry_on.empty() || submission.job.not_on_last_device))
    return fail(ErrorCode::usage, "--retry-on and --not-on-last-device say how: --retries says how often");
  if (submission.job.singleton && submission.job.name.empty())
    return fail(ErrorCode::usage, "--singleton is about the jobs of one name: add --job-name");
  if (submission.job.requeue && !submission.request.lease.request.request.yield_s)
    return fail(ErrorCode::usage, "--requeue is for jobs that yield: add --yield");
  return {};
}

Result<void> check_possible_here(command::Environment& environment, const Submission& submission) {
  if (submission.request.far.hosts.anywhere) return {};
  const auto never = refusal_for_ever(environment, submission.request.lease.request);
  environment.end_probe();
  if (!never) {
    const bool is_wrong =
        never.error().code == ErrorCode::impossible || never.error().code == ErrorCode::usage;
    return is_wrong ? std::unexpected(never.error()) : Result<void>();
  }
  if (!*never || (starts_later(submission.job) && may_recover(**never))) return {};
  return std::unexpected(leasing::in_words(**never, command::Environment::style_of(STDERR_FILENO)));
}

Result<JobSpool> make_spool() {
  BERTH_LET(const std::string path, JobSpool::standard_path());
  return JobSpool::make(path);
}

std::vector<std::string> environment_of_job(const Job& job) {
  std::set<std::string_view> left_out;
  if (!command::variable("BERTH_LEASE").empty()) left_out = names_of_a_lease();
  for (const char* name : {"BERTH_JOB", "BERTH_JOB_NAME", "BERTH_ARRAY_INDEX"}) left_out.insert(name);
  // Of a job that submits others; outside of one they may be Slurm's own.
  if (job.slurm || !command::variable("BERTH_JOB").empty()) {
    for (const char* name : {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NAME", "SLURM_ARRAY_JOB_ID",
                             "SLURM_ARRAY_TASK_ID", "SLURM_SUBMIT_DIR", "SLURM_CPUS_PER_TASK",
                             "SLURM_JOB_NODELIST", "SLURM_GPUS_ON_NODE", "SLURM_NTASKS", "SLURM_PROCID"})
      left_out.insert(name);
  }
  auto kept = command::own_environment();
  std::erase_if(kept,
                [&](std::string_view text) { return left_out.contains(text.substr(0, text.find('='))); });
  return kept;
}

Result<std::uint64_t> add_job(JobSpool& spool, Job job, std::string_view script) {
  const std::vector<std::string> environment = environment_of_job(job);
  return add_job(spool, std::move(job), script, environment);
}

Result<std::uint64_t> add_job(JobSpool& spool, Job job, std::string_view script,
                              const std::vector<std::string>& environment) {
  const auto numbers = spool.hold_numbers();
  if (!numbers) return std::unexpected(context(numbers.error(), "nothing was submitted"));
  return add_job(spool, *numbers, std::move(job), script, environment);
}

Result<std::uint64_t> add_job(JobSpool& spool, const sys::Descriptor& numbers, Job job,
                              std::string_view script, const std::vector<std::string>& environment) {
  if (job.folder.empty()) {
    BERTH_LET(job.folder, sys::current_folder());
  }
  take_from_shell(job);
  job.rivals = rivals_of(job.request, environment);
  job.submitted_s = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
  BERTH_LET(const std::uint64_t number, spool.add(numbers, job, environment, script));
  // From its name on a runner may start it: to say now that nothing was submitted would have it run
  // twice.
  if (const auto kept = spool.keep_names(); !kept)
    command::print_message(
        fmt::format("job {} is submitted, but if this machine goes down soon, the job may be lost: {}",
                    number, kept.error().message));
  return number;
}

}  // namespace berth::jobs
