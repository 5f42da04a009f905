// Runs a task once, as the step says (src/work/jobs/model/task_run_step.h), which holds the order
// that counts.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/hosts/caller.h"
#include "berth/job/edit_plan.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/job_terminal.h"
#include "berth/jobs/model/task_run_step.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/send_notice.h"
#include "berth/jobs/submission.h"
#include "berth/jobs/task_command.h"
#include "berth/site/site_file.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/run.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/view/receipt.h"

namespace berth::jobs {
namespace {

using Clock = std::chrono::steady_clock;

// The status of one that is not to be run, or not now.
constexpr int kNotNow = 75;
// How often the size of the output is looked at: what a job prints in between is over the bound for
// as long.
constexpr std::chrono::milliseconds kOutputPeriod{250};
// How often it is looked at whether the tenant is still there.
constexpr std::chrono::seconds kTenantLookPeriod{5};

TaskEvent taken_by_us() {
  TaskEvent event;
  event.kind = TaskEventKind::taken;
  event.taker = sys::unique_process(::getpid());
  return event;
}

/// A task that may take the place of another in the queue, with what its command needs.
struct Heir {
  TaskId id;
  Job job;
  unsigned edit = 0;
  sys::Descriptor lock, output;
  std::vector<std::string> variables;
  supervise::RunOptions command;
};

/// `rivals`: as of the other task. nullopt: it cannot take the place now.
std::optional<Heir> heir_of(const JobSpool& spool, TaskId id, const std::string& rivals) {
  auto found = [&]() -> Result<Heir> {
    Heir heir;
    heir.id = id;
    BERTH_LET(heir.lock, spool.hold(id));
    BERTH_LET(const auto whole, spool.as_a_whole(id.job));
    heir.edit = whole.edit;
    BERTH_LET(const auto job, spool.job(id.job));
    BERTH_LET(const auto standing, spool.standing(id));
    const bool may = heir.lock && job && job->rivals == rivals && may_run_instead(*job) &&
                     standing.phase == TaskPhase::waiting && !standing.on_hold;
    if (!may) return fail(ErrorCode::not_now, "it cannot take the place");
    heir.job = *job;
    BERTH_LET(heir.variables, spool.environment(id.job));
    BERTH_LET(heir.output, spool.output(id));
    BERTH_DO(fill_in_command(heir.command, spool, id, heir.job, false));
    return heir;
  }();
  return found ? std::optional(*std::move(found)) : std::nullopt;
}

class TaskRun {
 public:
  TaskRun(command::Environment& environment, const JobSpool& spool, TaskId id)
      : environment_(environment), spool_(spool), id_(id) {}

  Result<int> go() {
    BERTH_LET(lock_, spool_.hold(id_));
    if (!lock_) return kNotNow;
    // First, so that an edit between the two looks is noticed.
    BERTH_LET(const auto whole, spool_.as_a_whole(id_.job));
    BERTH_LET(const auto job, spool_.job(id_.job));
    if (!job) return kNotNow;
    edit_ = whole.edit;
    job_ = *job;
    take(task_run::begin());
    return status_;
  }

 private:
  // --- what the step says

  void happen(const task_run::Event& event) {
    take(task_run::next(job_, id_, self_, std::move(state_), event));
  }

  void take(task_run::Step step) {
    state_ = std::move(step.state);
    for (task_run::Action& action : step.actions)
      std::visit([this](auto& what) { perform(std::move(what)); }, action);
  }

  void perform(task_run::Look&&) { look(); }
  void perform(task_run::WriteAndLook&& what) {
    if (const auto written = spool_.append(id_, std::move(what.event), what.durable); !written)
      return happen(task_run::NotLooked{written.error()});
    look();
  }
  void perform(task_run::Note&& what) { tell_failure(spool_.append(id_, std::move(what.event))); }
  void perform(task_run::NoteCut&& what) {
    const std::uint64_t bytes = what.event.cut_bytes.value_or(0);
    // A cut that cannot be written now is written at the end.
    if (spool_.append(id_, std::move(what.event))) happen(task_run::CutNoted{bytes});
  }
  void perform(task_run::Join&& what) {
    // In the place of another task: the lease is there already.
    if (takes_place_) return;
    status_ = join(std::move(what));
    if (!status_) happen(task_run::Failed{status_.error(), still_waits()});
  }
  void perform(task_run::Go&&) { may_start_ = {}; }
  void perform(task_run::Refuse&& what) { may_start_ = std::unexpected(std::move(what.error)); }
  void perform(task_run::TellRunner&&) { tell_runner(); }
  void perform(task_run::TellStart&& what) {
    tell_of_start(spool_, id_.job, job_, fmt::format("{}", fmt::join(what.devices, ",")));
  }
  void perform(task_run::End&& what) {
    if (!what.events.empty()) tell_failure(spool_.append(id_, std::move(what.events)));
    tell_of_end(spool_, id_.job, job_, used_);
    spool_.ring(id_);
  }
  void perform(task_run::Leave&&) { status_ = kNotNow; }
  void perform(task_run::Fail&& what) { status_ = std::unexpected(std::move(what.error)); }

  void look() {
    const auto standing = spool_.standing(id_);
    if (!standing) return happen(task_run::NotLooked{standing.error()});
    const auto whole = spool_.as_a_whole(id_.job);
    if (!whole) return happen(task_run::NotLooked{whole.error()});
    happen(task_run::Looked{*standing, whole->phase == TaskPhase::cancelled, whole->on_hold,
                            whole->edit != edit_});
  }

  bool still_waits() const {
    const auto standing = spool_.standing(id_);
    if (!standing || !may_begin(*standing)) return false;
    const auto whole = spool_.as_a_whole(id_.job);
    return whole && whole->edit == edit_;
  }

  static void tell_failure(const Result<void>& done) {
    if (!done) command::print_message(done.error().message);
  }

  // The runner may have been killed, and then nobody else would put the next task into the queue.
  void tell_runner() const { tell_failure(ensure_runner(spool_, id_)); }

  // --- the command

  Result<int> join(task_run::Join what) {
    if (::chdir(job_.folder.c_str()) != 0) return sys::fail_errno(fmt::format("going to {}", job_.folder));
    BERTH_LET(JobRequest request, request_of(job_.request));
    const bool is_far = request.far.hosts.anywhere;
    supervise::RunOptions options;
    static_cast<supervise::LeaseOptions&>(options) = std::move(request.lease);
    Request& wish = options;
    std::ranges::move(what.not_on, std::back_inserter(wish.exclude));
    if (what.on_whole_devices && asks_memory_by_runs(wish)) wish = with_memory(std::move(wish), std::nullopt);
    options.in_background = true;
    options.was_accepted = true;
    // The note that `berth list` and `berth queue` show beside the command.
    options.note = to_text(TaskNote{id_, job_.name, options.note});
    BERTH_LET(options.first_look, supervise::time_of_first_look());
    BERTH_DO(fill_in_command(options, spool_, id_, job_, is_far));
    BERTH_DO(bound_output());
    if (job_.tty) BERTH_DO(make_terminal(options.hooks));
    if (job_.umask) ::umask(*job_.umask);
    set_hooks(options.hooks);
    if (!is_far) {
      auto possible = sys::possible_limits(job_.limits, job_.nice);
      options.hooks.limits = std::move(possible.limits);
      less_than_in_shell_ = std::move(possible.less);
      return run_leased(environment_, options);
    }
    options.quiet = true;
    return hosts::run_anywhere({std::move(options), std::move(request.far)});
  }

  Result<void> bound_output() {
    BERTH_LET(const auto files, site::read_site_files());
    const std::uint64_t most = files.policy.job_output_bytes;
    BERTH_LET(bound_,
              OutputBound::open(spool_.output_path(id_), std::min(job_.output_limit.value_or(most), most)));
    return {};
  }

  Result<void> make_terminal(supervise::RunHooks& hooks) {
    BERTH_LET(auto made, sys::make_pseudo_terminal("the job"));
    terminal_ = std::make_unique<JobTerminal>(std::move(made));
    hooks.terminal = terminal_->of_command();
    // A job that was submitted by a program may have none, and then no program would paint a
    // screen.
    if (sys::variable("TERM").empty()) hooks.environment.emplace_back("TERM", "xterm");
    return {};
  }

  void set_hooks(supervise::RunHooks& hooks) {
    hooks.instead = [this] { return pass_on(); };
    hooks.before_start = [this](const leasing::HeldLease& lease) -> Result<void> {
      if (is_lost_) return fail(ErrorCode::not_now, "it was edited just now");
      std::vector<std::string> devices;
      for (const Device* device : lease.devices()) devices.push_back(label(*device));
      return before_start(std::move(devices));
    };
    hooks.before_yes = [this](const std::vector<std::string>& devices) { return before_start(devices); };
    hooks.starts_again = [this](const RunEnd& end) {
      return again(end, {.requeue = job_.requeue}) != Again::no;
    };
    hooks.after_end = [this](const RunEnd& end, const std::optional<Receipt>& receipt) {
      // The notice of an array is about all of its tasks.
      if (receipt && !id_.index) used_ = view::receipt_sentence(*receipt);
      if (receipt) figures_ = figures_of(*receipt);
      after_end(end);
    };
    hooks.left_behind = [this](const std::string& processes) { tell_of_left(spool_, id_, job_, processes); };
    hooks.overruns = [this](const std::string& words) { tell_of_overrun(spool_, id_, job_, words); };
    hooks.at_last = [this] {
      tell_runner();
      if (terminal_) terminal_->end();
    };
    hooks.look = [this] {
      look_for_tenant();
      return look_at_output();
    };
    hooks.time_is_short = [this](std::int64_t left_s) {
      send_notices(job_.notify,
                   {NoticeEvent::time, to_text(id_), job_.name, subject_of(id_, job_), time_in_words(left_s)},
                   command::own_environment(), &spool_);
    };
    hooks.inherited = {lock_.get()};
  }

  // The user may have put another task before this one while this process stood in the queue.
  std::optional<supervise::RunInstead> pass_on() {
    const auto mine = spool_.standing(id_);
    // Once the task is cancelled, this process is to end: the signal may come at any time, and
    // would then end the other task.
    const bool gives = mine && mine->phase == TaskPhase::waiting && mine->passes_to;
    auto heir = gives ? heir_of(spool_, *mine->passes_to, job_.rivals) : std::nullopt;
    if (!heir || ::chdir(heir->job.folder.c_str()) != 0) return std::nullopt;
    TaskEvent handed_on;
    handed_on.handed_on = true;
    if (!spool_.append(id_, std::move(handed_on))) {
      is_lost_ = ::chdir(job_.folder.c_str()) != 0;
      return std::nullopt;
    }
    // A user who has cancelled, held or edited it just before may be about to end this process.
    const auto now = spool_.standing(id_);
    const auto whole = spool_.as_a_whole(id_.job);
    is_lost_ =
        !now || now->phase != mine->phase || now->on_hold != mine->on_hold || !whole || whole->edit != edit_;
    if (is_lost_) return std::nullopt;
    return take_place_of(*std::move(heir));
  }

  supervise::RunInstead take_place_of(Heir heir) {
    const TaskId before = std::exchange(id_, heir.id);
    // The lock of the first task ends with this, and only then its news is worth a look.
    lock_ = std::move(heir.lock);
    spool_.ring(before);
    job_ = std::move(heir.job);
    edit_ = heir.edit;
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(heir.output.get(), stream);
    sys::replace_environment(heir.variables);
    if (job_.umask) ::umask(*job_.umask);
    bound_.reset();
    tell_failure(bound_output());
    auto possible = sys::possible_limits(job_.limits, job_.nice);
    less_than_in_shell_ = std::move(possible.less);
    takes_place_ = true;
    take(task_run::begin());
    return {std::move(heir.command.command),
            to_text(TaskNote{id_, job_.name, job_.request.note}),
            std::move(heir.command.hooks.environment),
            {lock_.get()},
            std::move(possible.limits)};
  }

  Result<void> before_start(std::vector<std::string> devices) {
    BERTH_DO(send_output(id_, job_));
    for (const std::string& sentence : less_than_in_shell_)
      command::print_message(
          fmt::format("{} as in the shell that submitted the job: the runner of your jobs was started from a "
                      "shell that allows no more; it ends when no job waits",
                      sentence));
    // The log is where send_output has said.
    if (terminal_) BERTH_DO(terminal_->begin(spool_.terminal_path(id_), STDOUT_FILENO));
    happen(task_run::Granted{std::move(devices)});
    return may_start_;
  }

  void after_end(const RunEnd& end) {
    if (terminal_) terminal_->write_out();
    look_at_output();
    const auto standing = spool_.standing(id_);
    happen(task_run::CommandEnded{end, !spool_.has_room(), missing_bytes_,
                                  standing ? std::optional(*standing) : std::nullopt, figures_});
  }

  Clock::time_point look_at_output() {
    const auto next = Clock::now() + kOutputPeriod;
    if (!bound_) return next;
    const auto missing = bound_->keep();
    if (!missing) {
      command::print_message(missing.error().message);
      bound_.reset();
      return next;
    }
    missing_bytes_ = *missing;
    happen(task_run::OutputMissing{missing_bytes_});
    return next;
  }

  void look_for_tenant() {
    const auto now = Clock::now();
    if (job_.tenant == 0 || now < next_tenant_look_) return;
    next_tenant_look_ = now + kTenantLookPeriod;
    const auto there = spool_.has_tenant(job_.tenant);
    if (there && !*there) happen(task_run::TenantGone{});
  }

  command::Environment& environment_;
  const JobSpool& spool_;
  TaskId id_;
  sys::Descriptor lock_{};
  Job job_{};
  unsigned edit_ = 0;         ///< the edit that `job_` is of
  bool takes_place_ = false;  ///< this process came for another task
  bool is_lost_ = false;      ///< neither task may begin in this process
  TaskEvent self_ = taken_by_us();
  task_run::State state_{};
  Result<int> status_ = kNotNow;  ///< with which this process ends
  Result<void> may_start_ = fail(ErrorCode::failure, "nothing says that the task may start");
  std::string used_;  ///< what it had and used, in words
  RunFigures figures_;
  std::vector<std::string> less_than_in_shell_;  ///< what the command should get, and cannot
  Clock::time_point next_tenant_look_{};
  std::unique_ptr<JobTerminal> terminal_;  ///< null: the job has none
  std::optional<OutputBound> bound_;
  std::uint64_t missing_bytes_ = 0;  ///< of the output, by the last look
};

// `path` is that of the spool and, behind it, the task: "/…/12". The status is for whoever looks
// on: the runner reads the spool.
Result<int> run_task(command::Environment& environment, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const auto id = slash == std::string_view::npos ? std::nullopt : task_id_from_text(path.substr(slash + 1));
  if (!id) return fail(ErrorCode::usage, "{} is no task of a job", printable(path));
  BERTH_LET(const auto spool, JobSpool::open(std::string(path.substr(0, slash))));
  return TaskRun(environment, spool, *id).go();
}

/// The command that the runner starts for a task: a `berth run` that nobody watches.
class TaskRunCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "PATH"; }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "which task?");
    BERTH_LET(const int status, run_task(environment, words.front()));
    return command::Output{.status = status};
  }
};

}  // namespace

BERTH_COMMAND(make_task_run, TaskRunCommand);

}  // namespace berth::jobs
