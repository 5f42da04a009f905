// The order is what counts. The lock comes first, so that nobody else has the task; that it is started is
// written, and on the disk, before the command begins, so that whoever is killed in between leaves a task
// that was never run twice; and whether somebody has cancelled it is read after that, so that one of both
// sees the other.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/hosts/anywhere_run.h"
#include "berth/jobs/job_request.h"
#include "berth/jobs/job_runner.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/model/job_script.h"
#include "berth/jobs/notify.h"
#include "berth/jobs/output_bound.h"
#include "berth/lease/site_file.h"
#include "berth/slurm/model/slurm.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/run.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/limits.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

// The status of one that is not to be run, or not now.
constexpr int kNotNow = 75;
// How often the size of the output is looked at: what a job prints in between is over the bound for as long.
constexpr std::chrono::milliseconds kOutputPeriod{250};
// How often it is looked at whether the tenant is still there.
constexpr std::chrono::seconds kTenantLookPeriod{5};

// The first line, or where that only announces others, these.
std::string in_one_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  if (!line.ends_with(':')) return line;
  text.remove_prefix(line.size());
  while (!text.empty()) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of("\n ")));
    const std::string_view next = text.substr(0, text.find('\n'));
    if (!next.empty()) line += (line.ends_with(':') ? " " : "; ") + std::string(next);
    text.remove_prefix(next.size());
  }
  return line;
}

class TaskRun {
 public:
  TaskRun(command::Environment& environment, const JobSpool& spool, TaskId id)
      : environment_(environment), spool_(spool), id_(id) {}

  Result<int> go() {
    BERTH_LET(auto lock, spool_.hold(id_));
    if (!lock) return kNotNow;
    BERTH_LET(const auto job, spool_.job(id_.job));
    if (!job) return kNotNow;
    BERTH_LET(auto standing, spool_.standing(id_));
    if (standing.phase == TaskPhase::running && standing.rerun) {
      // The lock that makes it look alive is ours.
      BERTH_DO(append_step(TaskEventKind::cut_off));
      BERTH_LET(standing, spool_.standing(id_));
    }
    if (standing.phase != TaskPhase::waiting) return kNotNow;
    BERTH_DO(append_taken());
    // A process that cancelled the task before this was written could not find us, and nobody else will end
    // us.
    BERTH_LET(standing, spool_.standing(id_));
    if (standing.phase != TaskPhase::waiting) return kNotNow;
    job_ = *job;
    auto status = lead(*job, lock.get(), standing);
    if (status || started_) return status;
    return not_run(status.error(), standing.reason);
  }

 private:
  Result<int> lead(const Job& job, int lock, const TaskStanding& before) {
    if (::chdir(job.folder.c_str()) != 0) return sys::fail_errno(fmt::format("going to {}", job.folder));
    BERTH_LET(JobRequest request, read_job_request(job.request));
    supervise::RunOptions options;
    options.lease = std::move(request.lease);
    const bool is_far = request.far.hosts.anywhere;
    if (job.not_on_last_device && before.starts > 0) {
      std::vector<std::string>& exclude = options.lease.request.request.exclude;
      exclude.insert(exclude.end(), before.devices.begin(), before.devices.end());
    }
    BERTH_LET(options.command, words_of(job));
    if (is_far && job.has_script) BERTH_DO(bring_script(options));
    options.lease.in_background = true;
    options.lease.note = note_of(job, options.lease.note);
    // The value was stored with the job, perhaps by an earlier Berth.
    BERTH_LET(options.first_look, supervise::time_of_first_look(Unitless::is_base));
    supervise::RunHooks& hooks = options.hooks;
    if (job.umask) ::umask(*job.umask);
    if (!is_far) {
      auto possible = sys::possible_limits(job.limits, job.nice);
      hooks.limits = std::move(possible.limits);
      less_than_in_shell_ = std::move(possible.less);
    }
    hooks.preempted = [this](const std::string& why) { preempted_ = why; };
    hooks.before_start = [this](const leasing::HeldLease& lease) {
      std::vector<std::string> devices;
      for (const Device* device : lease.devices()) devices.push_back(label(*device));
      return before_start(devices);
    };
    hooks.before_yes = [this](const std::vector<std::string>& devices) { return before_start(devices); };
    hooks.after_end = [this](const sys::JobEnding& ending) { after_end(ending); };
    hooks.left_behind = [this](const std::string& processes) { tell_of_left(spool_, id_, job_, processes); };
    hooks.at_last = [this] { tell_runner(); };
    BERTH_LET(const auto files, leasing::read_site_files(leasing::standard_site_file_paths()));
    const std::uint64_t most = files.policy.job_output_bytes;
    BERTH_LET(auto bound,
              OutputBound::open(spool_.output_path(id_), std::min(job.output_limit.value_or(most), most)));
    bound_ = std::move(bound);
    hooks.look = [this] {
      look_for_tenant();
      return look_at_output();
    };
    hooks.time_is_short = [this](std::int64_t left_s) {
      send_notices(job_.notify,
                   {NoticeEvent::time, to_text(id_), job_.name, subject_of(id_, job_), time_in_words(left_s)},
                   command::own_environment(), &spool_);
    };
    hooks.inherited = {lock};
    for (auto& variable : variables_of(job)) hooks.environment.push_back(std::move(variable));
    if (!is_far) return run_leased(environment_, options);
    options.quiet = true;
    return hosts::run_anywhere({std::move(options), std::move(request.far)});
  }

  // The file of the script is on this machine only. As a word the text could have things replaced in it.
  Result<void> bring_script(supervise::RunOptions& options) const {
    BERTH_LET(std::string text, spool_.script(id_.job));
    BERTH_LET(std::vector<std::string> words, shell_of_script(text));
    for (const char* word : {"-c", "script=$BERTH_JOB_SCRIPT; unset BERTH_JOB_SCRIPT; eval \"$script\""})
      words.emplace_back(word);
    words.insert(words.end(), options.command.begin(), options.command.end());
    options.command = std::move(words);
    options.hooks.environment.emplace_back("BERTH_JOB_SCRIPT", std::move(text));
    return {};
  }

  Result<std::vector<std::string>> words_of(const Job& job) const {
    std::vector<std::string> words = job.words;
    if (job.has_script) words.front() = spool_.script_path(id_.job);
    if (!id_.index) return words;
    if (!job.lines_of.empty()) {
      BERTH_LET(const std::string lines, spool_.script(id_.job));
      words.emplace_back(line_of(lines, *id_.index));
    }
    fill_in_task(words, job, *id_.index);
    return words;
  }

  std::vector<std::pair<std::string, std::string>> variables_of(const Job& job) const {
    std::vector<std::pair<std::string, std::string>> variables{{"BERTH_JOB", to_text(id_)},
                                                               {"BERTH_JOB_NAME", job.name}};
    if (job.slurm) {
      // A number, also for a task: scripts count with it.
      const std::string number = std::to_string(id_.job);
      variables.insert(variables.end(),
                       {{"SLURM_JOB_ID", number}, {"SLURM_JOBID", number}, {"SLURM_JOB_NAME", job.name}});
      if (id_.index)
        variables.insert(variables.end(), {{"SLURM_ARRAY_JOB_ID", number},
                                           {"SLURM_ARRAY_TASK_ID", std::to_string(*id_.index)}});
    }
    if (!id_.index) return variables;
    variables.emplace_back("BERTH_ARRAY_INDEX", std::to_string(*id_.index));
    for (const auto& [name, value] : params_of(job, *id_.index))
      variables.emplace_back("BERTH_PARAM_" + name, value);
    return variables;
  }

  // The note that `berth list` and `berth queue` show beside the command.
  std::string note_of(const Job& job, const std::string& note) const {
    return to_text(TaskNote{id_, job.name, note});
  }

  Result<void> append_taken() const {
    TaskEvent event;
    event.kind = TaskEventKind::taken;
    event.pid = static_cast<std::uint32_t>(::getpid());
    if (const auto stat = sys::process_stat(::getpid())) event.pid_start_ticks = stat->start_ticks;
    return spool_.append(id_, std::move(event));
  }

  Result<void> append_step(TaskEventKind kind) const {
    TaskEvent event;
    event.kind = kind;
    return spool_.append(id_, std::move(event));
  }

  // From here on what the command prints goes to the user's own files. What is kept of it says where.
  Result<void> send_output() const {
    struct stat kept{};
    const bool is_first = ::fstat(STDOUT_FILENO, &kept) == 0 && kept.st_size == 0;
    const auto open_file = [&](const std::string& pattern) -> Result<sys::Descriptor> {
      if (pattern.empty()) return sys::Descriptor();
      const std::string name = filled_slurm_pattern(pattern, id_, job_.name, sys::user_name(::geteuid()));
      // A second run appends to the output of the first.
      sys::Descriptor file(
          ::open(name.c_str(),
                 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | (is_first ? O_TRUNC : 0), 0666));
      if (!file) return sys::fail_errno(fmt::format("opening {} in {} for the output", name, job_.folder));
      command::print_message(fmt::format("what the job prints{} is in {}",
                                         &pattern == &job_.error_to ? " as errors" : "", name));
      return file;
    };
    BERTH_LET(const auto output, open_file(job_.output_to));
    BERTH_LET(const auto errors, open_file(job_.error_to));
    if (output && ::dup2(output.get(), STDOUT_FILENO) < 0) return sys::fail_errno("sending the output");
    const int error_file = errors ? errors.get() : output ? output.get() : STDERR_FILENO;
    if (::dup2(error_file, STDERR_FILENO) < 0) return sys::fail_errno("sending the errors");
    return {};
  }

  Result<void> before_start(const std::vector<std::string>& devices) {
    BERTH_DO(send_output());
    for (const std::string& sentence : less_than_in_shell_)
      command::print_message(
          fmt::format("{} as in the shell that submitted the job: the runner of your jobs was started from a "
                      "shell that allows no more; it ends when no job waits",
                      sentence));
    TaskEvent event;
    event.kind = TaskEventKind::started;
    event.rerun = job_.rerun;
    event.devices = devices;
    if (const auto written = spool_.append(id_, std::move(event), true); !written) {
      // The line may be in the file and not on the disk. Nothing has run: nobody shall take it for cut off.
      if (const auto excused = append_step(TaskEventKind::cut_off); !excused)
        command::print_message(excused.error().message);
      return written;
    }
    BERTH_LET(const auto standing, spool_.standing(id_));
    BERTH_LET(const bool cancelled, spool_.is_cancelled(id_.job));
    if (cancelled && id_.index) BERTH_DO(append_step(TaskEventKind::cancelled));
    if (cancelled || standing.phase != TaskPhase::running)
      return fail(ErrorCode::not_now, "it was cancelled");
    started_ = true;
    tell_runner();
    tell_of_start(spool_, id_.job, job_, fmt::format("{}", fmt::join(devices, ",")));
    return {};
  }

  void after_end(const sys::JobEnding& ending) {
    look_at_output();
    std::vector<TaskEvent> events;
    if (cut_ != told_cut_) events.push_back(output_cut());
    TaskEvent end;
    end.kind = TaskEventKind::ended;
    if (ending.signal != 0)
      end.signal = ending.signal;
    else
      end.exit_status = ending.exit_status;
    if ((ending.signal != 0 || ending.exit_status != 0) && !spool_.has_room())
      end.reason = "when it ended, the disk that its output is on was full";
    if (!preempted_.empty()) end.reason = preempted_;
    events.push_back(end);
    // A task that ends for a waiter did not fail, so this counts as no try.
    if (!preempted_.empty()) {
      if (job_.requeue) events.emplace_back().kind = TaskEventKind::preempted;
    } else if (is_retried(end)) {
      events.emplace_back().kind = TaskEventKind::retried;
    }
    if (const auto written = spool_.append(id_, std::move(events)); !written)
      command::print_message(written.error().message);
    started_ = true;
    tell_of_end(spool_, id_.job, job_);
    spool_.ring(id_);
  }

  std::chrono::steady_clock::time_point look_at_output() {
    const auto next = std::chrono::steady_clock::now() + kOutputPeriod;
    if (!bound_) return next;
    const auto cut = bound_->keep();
    if (!cut) {
      command::print_message(cut.error().message);
      bound_.reset();
      return next;
    }
    cut_ = *cut;
    // So that a job that prints for ever does not fill up its state instead.
    if (cut_ == 0 || cut_ < 2 * told_cut_) return next;
    // If this cannot be written now, the cut is noted at the end.
    if (spool_.append(id_, output_cut())) told_cut_ = cut_;
    return next;
  }

  // A runner ends what a tenant has left. One that was killed is missed by nobody else.
  void look_for_tenant() {
    const auto now = std::chrono::steady_clock::now();
    if (job_.tenant == 0 || now < next_tenant_look_) return;
    next_tenant_look_ = now + kTenantLookPeriod;
    const auto there = spool_.has_tenant(job_.tenant);
    if (there && !*there) tell_runner();
  }

  TaskEvent output_cut() const {
    TaskEvent event;
    event.kind = TaskEventKind::output_cut;
    event.cut_bytes = cut_;
    return event;
  }

  bool is_retried(const TaskEvent& end) const {
    auto standing = spool_.standing(id_);
    if (!standing || standing->phase != TaskPhase::running || standing->asked_to_end) return false;
    standing->phase = TaskPhase::ended;
    standing->exit_status = end.exit_status;
    standing->signal = end.signal;
    return is_to_be_retried(job_, *standing);
  }

  // A runner that was killed can send no next job into the queue.
  void tell_runner() const {
    if (const auto told = ensure_runner(spool_, id_); !told) command::print_message(told.error().message);
  }

  // A request that can never be granted ends the task. All else may be better later: a driver that is being
  // replaced, a full disk.
  Result<int> not_run(const Error& error, const std::string& reason_before) {
    const bool never = error.code == ErrorCode::impossible || error.code == ErrorCode::usage;
    TaskEvent event;
    event.kind = never ? TaskEventKind::ended : TaskEventKind::put_off;
    event.reason = in_one_line(error.message);
    if (never) event.exit_status = outcome_of(error.code).exit_status;
    if (never || event.reason != reason_before) {
      if (const auto standing = spool_.standing(id_); standing && standing->phase == TaskPhase::waiting)
        BERTH_DO(spool_.append(id_, std::move(event)));
    }
    if (!never) return kNotNow;
    tell_of_end(spool_, id_.job, job_);
    return std::unexpected(error);
  }

  command::Environment& environment_;
  const JobSpool& spool_;
  TaskId id_;
  Job job_;
  bool started_ = false;
  std::string preempted_;                        ///< for whom it is ended
  std::vector<std::string> less_than_in_shell_;  ///< what the command should get, and cannot
  std::chrono::steady_clock::time_point next_tenant_look_{};
  std::optional<OutputBound> bound_;
  std::uint64_t cut_ = 0;       ///< bytes of the output that are missing
  std::uint64_t told_cut_ = 0;  ///< as the state says
};

// `path` is that of the spool and, behind it, the task: "/…/12". The status is for whoever looks on: the
// runner reads the spool.
Result<int> run_task(command::Environment& environment, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const auto id = slash == std::string_view::npos ? std::nullopt : task_id_from_text(path.substr(slash + 1));
  if (!id) return fail(ErrorCode::usage, fmt::format("{} is no task of a job", printable(path)));
  BERTH_LET(const auto spool, JobSpool::open(std::string(path.substr(0, slash))));
  return TaskRun(environment, spool, *id).go();
}

/// The command that the runner starts for a task: a `berth run` in the background.
class TaskCommand : public command::Command {
 public:
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.arguments = "PATH";
    return syntax;
  }

  Result<command::Output> run(command::Environment& environment,
                              const std::vector<std::string>& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "which task?");
    BERTH_LET(const int status, run_task(environment, words.front()));
    return command::Output{.status = status};
  }
};

}  // namespace

std::unique_ptr<command::Command> make_task_run() {
  return std::make_unique<TaskCommand>();
}

}  // namespace berth::jobs
