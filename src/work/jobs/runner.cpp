// The runner lives only while there is work, and holds nothing that is lost with it: what it knows
// it reads anew from the spool, and what it starts goes on without it. It leases nothing. For all
// jobs that ask for the same it has one `berth run` in the queue of the machine; when that one
// starts its command, it sends the next. What it does when is in
// src/work/jobs/model/runner_step.h.

#include "berth/jobs/runner.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>

#include <fmt/format.h>

#include "berth/command/command.h"
#include "berth/job/run_end.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool_files.h"
#include "berth/jobs/job_standings.h"
#include "berth/jobs/model/runner_step.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/send_notice.h"
#include "berth/site/site_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::jobs {
namespace {

using namespace std::chrono_literals;

constexpr const char* kRunnerName = "berth __jobs";
// A command holds its lease by files that are numbered from 100 on, one for each device.
constexpr rlim_t kOpenFiles = 256;
constexpr std::string_view kTenantLeft = "the program that it was submitted for has ended";

// Others may pass: too many open files, no memory, a disk that fails. No later try makes a job of a
// file that is none.
bool may_pass(const Error& error) {
  const int why = error.os_error;
  return why != 0 && why != ENOTDIR && why != EISDIR && why != ELOOP;
}

/// The process of a task that is in the queue or runs: a child of ours, or one that an earlier
/// runner has started.
struct LiveTask {
  TaskId id;  ///< of job 0: it has gone on with another task
  std::optional<sys::Child> child{};
  sys::Descriptor ended{};  ///< readable once it has; of a child that is told by a signal
};

class JobRunner {
 public:
  JobRunner(JobSpool spool, std::string program, sys::Descriptor signals)
      : spool_(std::move(spool)), program_(std::move(program)), signals_(std::move(signals)) {}

  /// Returns when there is nothing left to start.
  Result<void> go() {
    perform(runner::BeginAgain{});
    while (!result_) {
      if (events_.empty()) events_.emplace_back(runner::Settled{});
      const runner::Event what = std::move(events_.front());
      events_.pop_front();
      auto step = runner::next(std::move(state_),
                               {std::chrono::steady_clock::now().time_since_epoch(), wall_seconds(), what});
      state_ = std::move(step.state);
      for (runner::Action& action : step.actions)
        std::visit([this](auto& each) { perform(std::move(each)); }, action);
    }
    return *result_;
  }

 private:
  static std::int64_t wall_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
  }

  void tell(runner::Event what) { events_.push_back(std::move(what)); }
  void leave(Result<void> result = {}) {
    if (!result_) result_ = std::move(result);
  }

  // --- the lock of the runner

  void perform(runner::BeginAgain&&) {
    auto lock = spool_.hold_as_runner();
    if (!lock) return leave(std::unexpected(lock.error()));
    if (!*lock) return leave();
    lock_ = *std::move(lock);
    auto bell = spool_.bell();
    if (!bell) return leave(std::unexpected(bell.error()));
    bell_ = *std::move(bell);
    over_.emplace(spool_);
    tell(runner::RunnerBegun{});
  }
  void perform(runner::LetGo&&) {
    over_->keep();
    lock_.close();
    // Not read: it may be for whoever is the runner now.
    int unread = 0;
    const bool is_known = ::ioctl(bell_.get(), FIONREAD, &unread) == 0;
    tell(runner::HasLetGo{!is_known || unread > 0});
  }
  void perform(runner::Leave&&) { leave(); }

  // --- what is in the spool

  void perform(runner::List&&) {
    auto numbers = spool_.numbers();
    if (numbers) return tell(runner::JobsListed{*std::move(numbers)});
    // A folder that was removed does not come back.
    if (may_pass(numbers.error()) && numbers.error().os_error != ENOENT) return tell(runner::JobsNotListed{});
    leave(std::unexpected(numbers.error()));
  }

  void perform(runner::ReadJob&& what) {
    if (over_ && over_->is_still(what.number)) return tell(runner::StillOver{what.number});
    read_job(what.number);
  }

  void read_job(std::uint64_t number) {
    auto read = read_now(number);
    if (read) return tell(*std::move(read));
    if (may_pass(read.error())) return tell(runner::NotRead{number});
    tell(runner::JobRead{.number = number});
  }

  Result<runner::JobRead> read_now(std::uint64_t number) {
    runner::JobRead read{.number = number};
    BERTH_LET(auto told, spool_.told(number));
    if (!told) return read;
    if (over_) over_->note(number, *told);
    read.gpus = told->job.request.request.count;
    read.job = std::move(told->job);
    read.standings = std::move(told->standings);
    read.position = std::move(told->position);
    return read;
  }

  std::optional<TaskStanding> standing_of_task(TaskId id) const {
    auto standing = spool_.standing(id);
    return standing ? std::optional(*std::move(standing)) : std::nullopt;
  }

  void perform(runner::ReadTask&& what) { tell(runner::TaskRead{what.id, standing_of_task(what.id)}); }

  void perform(runner::AskTenants&& what) {
    std::erase_if(what.tenants, [this](std::uint64_t tenant) {
      const auto there = spool_.has_tenant(tenant);
      return !there || *there;
    });
    tell(runner::TenantsSeen{std::move(what.tenants)});
  }

  void perform(runner::AskWell&& what) {
    std::optional<runner::Reproach> reproach;
    // False: one of them cannot be read now.
    const auto hold_against = [&](const std::vector<std::uint64_t>& others, bool asked_to_end_well) {
      for (const std::uint64_t other : others) {
        const auto ok = is_ok(other);
        if (!ok && may_pass(ok.error())) {
          tell(runner::NotRead{other});
          return false;
        }
        if (!reproach && ok.value_or(false) != asked_to_end_well)
          reproach = runner::Reproach{other, !asked_to_end_well};
      }
      return true;
    };
    if (hold_against(what.jobs, true) && hold_against(what.failed, false))
      tell(runner::WellKnown{what.number, reproach});
  }

  Result<bool> is_ok(std::uint64_t number) const {
    BERTH_LET(const auto job, spool_.job(number));
    if (!job) return false;
    BERTH_LET(const auto standings, spool_.standings(number, *job));
    return counts_of(standings).done == standings.size();
  }

  void perform(runner::GiveUp&& what) {
    TaskEvent event;
    event.kind = TaskEventKind::cancelled;
    event.reason =
        what.reproach.ended_well
            ? fmt::format("job {} ended well, and --after-fail asks that it fail", what.reproach.job)
            : fmt::format("job {} did not end with status 0, as --after-ok asks", what.reproach.job);
    if (spool_.append({what.number, {}}, std::move(event))) read_job(what.number);
  }

  void perform(runner::Cancel&& what) {
    // That it still runs for a moment is no fault.
    if (const auto job = spool_.job(what.number); job && *job) {
      [[maybe_unused]] const auto asked =
          cancel_job(spool_, {what.number, **job, what.index}, 0ms, kTenantLeft);
    }
    read_job(what.number);
  }

  void perform(runner::TellEnd&& what) {
    if (const auto job = spool_.job(what.number); job && *job) tell_of_end(spool_, what.number, **job);
  }

  void perform(runner::NotePutOff&& what) {
    TaskEvent event;
    event.kind = TaskEventKind::put_off;
    event.reason = std::move(what.reason);
    // Where not even this can be written, the next try tells.
    [[maybe_unused]] const auto written = spool_.append(what.id, std::move(event));
  }

  void perform(runner::ForgetOld&&) {
    const auto files = site::read_site_files();
    if (files && files->policy.keep_jobs_s)
      forget_old_jobs(spool_, std::chrono::seconds(*files->policy.keep_jobs_s));
  }

  // --- processes

  void perform(runner::Spawn&& what) {
    auto child = spawn(what.id);
    if (child) return (void)live_.emplace_back(LiveTask{.id = what.id, .child = *std::move(child)});
    const auto standing = standing_of_task(what.id);
    // A job that cannot be read has no notices.
    tell(
        runner::NotSpawned{what.id, standing ? child.error().message : "", standing ? standing->reason : ""});
  }

  Result<sys::Child> spawn(TaskId id) const {
    BERTH_LET(auto environment, spool_.environment(id.job));
    BERTH_LET(const auto output, spool_.output(id));
    sys::Command command;
    command.program = program_;
    command.arguments = {"__job", fmt::format("{}/{}", spool_.path(), to_text(id))};
    command.output = command.error = output.get();
    command.environment = std::move(environment);
    return sys::Child::spawn(command);
  }

  void perform(runner::Watch&& what) {
    const TaskStanding& standing = what.standing;
    LiveTask found{.id = what.id};
    if (runs_task(standing)) found.ended = sys::process_exit(static_cast<pid_t>(standing.taker.pid));
    if (!found.ended)
      return tell(
          runner::NotWatched{what.id, standing.asked_to_end, standing.asked_to_end && is_overdue(standing)});
    live_.push_back(std::move(found));
    tell(runner::Watched{what.id});
  }

  bool is_overdue(const TaskStanding& standing) const {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(sys::since_boot()) -
                       std::chrono::milliseconds(standing.last_boot_ms);
    return standing.last_boot == boot_ && since >= kTimeForOwnRest + time_grace_here();
  }

  void perform(runner::EndChild&& what) {
    const auto live = std::ranges::find(live_, what.id, &LiveTask::id);
    if (live != live_.end() && live->child) sys::ask_to_cancel(sys::unique_process(live->child->pid()));
  }

  void perform(runner::LetBe&& what) {
    const auto live = std::ranges::find(live_, what.id, &LiveTask::id);
    if (live != live_.end()) live->id = {};
  }

  void perform(runner::KillLeft&& what) {
    for (const pid_t left : spool_.holders(what.id))
      sys::send_signal(left, SIGKILL, [&](pid_t pid) { return spool_.is_held_by(what.id, pid); });
  }

  // --- sleeping

  void perform(runner::Sleep&& what) {
    std::vector<pollfd> ready{{bell_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    for (const LiveTask& each : live_) ready.push_back({each.ended.get(), POLLIN, 0});  // -1 is ignored
    sys::Deadline until;
    if (what.until) until = std::chrono::steady_clock::time_point(*what.until);
    if (::poll(ready.data(), ready.size(), sys::poll_timeout(until)) < 0) return tell(runner::Woken{});
    if (ready[1].revents != 0 && !handle_signals()) return leave();
    std::vector<TaskId> ended;
    std::size_t place = 2;
    std::erase_if(live_, [&](LiveTask& each) {
      const bool asked = ready[place++].revents != 0;
      const bool gone = each.child ? each.child->wait(0ms).has_value() : asked;
      if (gone && each.id.job != 0) ended.push_back(each.id);
      return gone;
    });
    for (const TaskId id : ended) tell(runner::ProcessEnded{id, standing_of_task(id)});
    if (ready[0].revents != 0) handle_bell();
    tell(runner::Woken{});
  }

  // False: we are asked to end.
  bool handle_signals() {
    signalfd_siginfo info{};
    bool goes_on = true;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info)
      goes_on = goes_on && info.ssi_signo == SIGCHLD;
    return goes_on;
  }

  void handle_bell() {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(bell_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    if (static_cast<std::size_t>(got) == buffer.size()) {
      // More than fits: what it says is cut off somewhere.
      while (::read(bell_.get(), buffer.data(), buffer.size()) > 0) continue;
      return tell(runner::Overheard{});
    }
    runner::Rung rung;
    std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (const auto id = task_id_from_text(line)) rung.tasks.insert(*id);
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    tell(std::move(rung));
  }

  JobSpool spool_;
  std::string program_;
  sys::Descriptor signals_;
  sys::Descriptor lock_{};
  sys::Descriptor bell_{};
  std::optional<JobsOver> over_{};
  std::string boot_ = sys::boot_id();
  runner::State state_{};
  std::deque<runner::Event> events_{};
  std::vector<LiveTask> live_{};
  std::optional<Result<void>> result_{};  ///< with which it ends
};

Result<sys::Descriptor> runner_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
  ::signal(SIGCHLD, SIG_DFL);
  sys::Descriptor signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return sys::fail_errno("preparing the runner");
  return signals;
}

// A runner that can start nothing would stand in the way of the jobs of all other shells.
Result<void> check_limits() {
  const rlim_t most = sys::most_open_files();
  if (most >= kOpenFiles) return {};
  return fail(ErrorCode::failure,
              fmt::format("this shell allows {} open files (ulimit -Hn), and a runner of jobs needs {}", most,
                          kOpenFiles));
}

/// The runner itself: `ensure_runner` starts it in a session of its own.
class Jobs : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "FOLDER"; }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "which folder?");
    BERTH_LET(auto spool, JobSpool::open(words.front()));
    BERTH_LET(auto program, command::program_path());
    BERTH_LET(auto signals, runner_signals());
    // A file system that is somebody's working directory cannot be unmounted.
    if (::chdir("/") != 0) return sys::fail_errno("leaving the working directory");
    // The limits of the shell that has started us are not for the jobs of others.
    sys::raise_limits();
    ::umask(022);
    ::prctl(PR_SET_NAME, kRunnerName);
    BERTH_DO(JobRunner(std::move(spool), std::move(program), std::move(signals)).go());
    return command::Output{};
  }
};

}  // namespace

Result<void> can_have_runner(const JobSpool& spool) {
  BERTH_LET(const bool there, spool.has_runner());
  return there ? Result<void>() : check_limits();
}

Result<JobSpool> open_spool() {
  BERTH_LET(const std::string path, JobSpool::standard_path());
  return JobSpool::open(path);
}

Result<void> ensure_runner(const JobSpool& spool, TaskId news) {
  // In this order: a runner gives up its lock before it looks whether the bell has rung. So it
  // hears this, or its lock is gone.
  spool.ring(news);
  BERTH_LET(const bool there, spool.has_runner());
  if (there) return {};
  BERTH_DO(check_limits());
  sys::Command command;
  BERTH_LET(command.program, command::program_path());
  command.arguments = {"__jobs", spool.path()};
  const auto runner = sys::Child::spawn(command);
  if (!runner) return std::unexpected(context(runner.error(), "starting the runner of your jobs"));
  return {};
}

std::string why_runner_rests(const JobSpool& spool) {
  for (const pid_t pid : spool.deaf_runner()) {
    const auto halted = sys::what_halts(pid);
    if (!halted) continue;
    return fmt::format("process {}, which starts your jobs, is {}{}", pid, halted->how,
                       halted->remedy.empty() ? "" : fmt::format("; `{}` lets it go on", halted->remedy));
  }
  return "";
}

BERTH_COMMAND(make_job_runner, Jobs);

}  // namespace berth::jobs
