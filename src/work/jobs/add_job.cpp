#include "berth/jobs/add_job.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/device/device.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/model/submit_rules.h"
#include "berth/jobs/runner.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/view/jobs.h"
#include "berth/view/text.h"

namespace berth::jobs {
namespace {

// A job is for the machine: what a lease told this process is not for it.
std::set<std::string_view> names_of_a_lease() {
  std::set<std::string_view> names{"BERTH_LEASE", "BERTH_PROMPT"};
  for (const Vendor& vendor : vendors()) {
    names.insert(vendor.mask_variable);
    if (!vendor.order_variable.empty()) names.insert(vendor.order_variable);
  }
  return names;
}

// The runner that starts it may be the child of another shell.
void take_from_shell(Job& job) {
  // Nobody can ask for it without setting it.
  job.umask = ::umask(077);
  ::umask(*job.umask);
  job.nice = ::getpriority(PRIO_PROCESS, 0);
  job.limits = sys::soft_limits();
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

Result<JobSpool> make_spool() {
  BERTH_LET(const std::string path, JobSpool::standard_path());
  return JobSpool::make(path);
}

std::vector<std::string> environment_of_job(const Job& job) {
  std::set<std::string_view> left_out;
  if (!sys::variable("BERTH_LEASE").empty()) left_out = names_of_a_lease();
  for (const char* name : {"BERTH_JOB", "BERTH_JOB_NAME", "BERTH_ARRAY_INDEX"}) left_out.insert(name);
  // Of a job that submits others; outside of one they may be Slurm's own.
  if (job.slurm || !sys::variable("BERTH_JOB").empty()) {
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
                              const std::vector<std::string>& environment, bool held) {
  const auto numbers = spool.hold_numbers();
  if (!numbers) return std::unexpected(context(numbers.error(), "nothing was submitted"));
  return add_job(spool, *numbers, std::move(job), script, environment, held);
}

Result<std::uint64_t> add_job(JobSpool& spool, const sys::Descriptor& numbers, Job job,
                              std::string_view script, const std::vector<std::string>& environment,
                              bool held) {
  if (job.folder.empty()) {
    BERTH_LET(job.folder, sys::current_folder());
  }
  take_from_shell(job);
  job.rivals = rivals_of(job.request, environment);
  job.submitted_s = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
  BERTH_LET(const std::uint64_t number, spool.add(numbers, job, environment, script, held));
  // From its name on a runner may start it: to say now that nothing was submitted would have it run
  // twice.
  if (const auto kept = spool.keep_names(); !kept)
    command::print_message(
        fmt::format("job {} is submitted, but if this machine goes down soon, the job may be lost: {}",
                    number, kept.error().message));
  return number;
}

Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment,
                         bool held) {
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
  BERTH_LET(kept.number, add_job(spool, std::move(job), script, environment, held));
  // Once a call is enough for who looks on; in a script it would be noise.
  if (const auto warning = ::isatty(STDERR_FILENO) == 1 ? logout_warning() : std::nullopt)
    kept.told = command::as_lines({fmt::format("warning: {}; {}", warning->what, warning->advice)});
  if (const auto runner = ensure_runner(spool, {kept.number, {}}); !runner)
    kept.told +=
        command::as_lines({fmt::format("job {} is kept, and waits until `berth jobs` can start a runner: {}",
                                       kept.number, runner.error().message)});
  return kept;
}

namespace {

// As systemd reads them: the main file, then all drop-ins by their names, of which one in /etc
// hides that in /usr.
std::vector<std::string> logind_settings() {
  std::vector<std::string> settings;
  for (const char* main : {"/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf"}) {
    if (const auto text = sys::read_whole(main)) settings = {*text};
  }
  std::map<std::string, std::filesystem::path> parts;
  for (const char* folder :
       {"/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      parts.insert_or_assign(entry.path().filename().string(), entry.path());
  }
  for (const auto& [name, path] : parts) {
    if (!name.ends_with(".conf")) continue;
    if (const auto text = sys::read_whole(path.string())) settings.push_back(*text);
  }
  return settings;
}

}  // namespace

std::optional<LogoutWarning> logout_warning() {
  const auto cgroup = sys::read_whole("/proc/self/cgroup");
  if (!cgroup) return std::nullopt;
  const std::string user = sys::user_name(::geteuid());
  const bool lingers = ::access(fmt::format("/var/lib/systemd/linger/{}", user).c_str(), F_OK) == 0;
  switch (logout_of(*cgroup, logind_settings(), user, lingers)) {
    case Logout::keeps:
      break;
    case Logout::ends_session:
      return LogoutWarning{
          "this machine ends all processes of a login session at logout, running jobs too "
          "(KillUserProcesses=yes)",
          fmt::format("{}systemd-run --user --scope berth submit …",
                      lingers ? "" : "ask an admin for `loginctl enable-linger " + user + "`, then ")};
    case Logout::ends_manager:
      return LogoutWarning{"what is started here ends at your last logout, running jobs too (no linger)",
                           fmt::format("ask an admin for `loginctl enable-linger {}`", user)};
  }
  return std::nullopt;
}

Result<Earlier> earlier_of(const JobSpool& spool, const Job& job) {
  Earlier earlier;
  BERTH_LET(const auto numbers, spool.numbers());
  for (const std::uint64_t number : numbers) {
    const auto other = spool.job(number);
    if (!other || !*other || (*other)->lines_of != job.lines_of || (*other)->folder != job.folder) continue;
    const auto text = spool.script(number);
    const auto standings = spool.standings(number, **other);
    if (!text || !standings) continue;
    const std::vector<unsigned> lines = indices_of(**other);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (counts_of({&(*standings)[i], 1}).done == 1) ++earlier.done[std::string(line_of(*text, lines[i]))];
    }
    if (std::ranges::all_of(*standings, is_over)) continue;
    earlier.alive = NumberedJob{number, **other};
    earlier.text_of_alive = *text;
  }
  return earlier;
}

void leave_out(std::vector<unsigned>& lines, std::string_view text, DoneCommands done) {
  std::erase_if(lines, [&](unsigned number) {
    const auto found = done.find(line_of(text, number));
    if (found == done.end() || found->second == 0) return false;
    --found->second;
    return true;
  });
}

Progress::Progress(std::size_t all, std::size_t done)
    : all_(all), done_(done), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::ended(TaskId id, const TaskStanding& standing, std::string_view command) {
  if (terminal_ && standing.phase == TaskPhase::ended && exit_status_of(standing) == 0) return;
  end();
  command::write_error(view::ended_line(id, standing, command));
}

void Progress::show(const TaskCounts& counts) {
  if (!terminal_ || !supervise::may_draw()) return;
  const view::Style style = command::Environment::style_of(STDERR_FILENO);
  std::string line = view::cut(view::progress_line(counts, all_, done_), style.width - 1);
  if (line == last_) return;
  command::mention(fmt::format("{}{}", view::kClearLine, line));
  last_ = std::move(line);
}

void Progress::end() {
  if (!last_.empty() && supervise::may_draw()) command::mention(view::kClearLine);
  last_.clear();
}

}  // namespace berth::jobs
