// The runner lives only while there is work, and holds nothing that is lost with it: what it knows it reads
// anew from the spool, and what it starts goes on without it. It leases nothing. For all jobs that ask for
// the same it has one `berth run` in the line of the machine; when that one starts its command, it sends the
// next.

#include "berth/jobs/job_runner.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <set>

#include <fmt/format.h>

#include "berth/command/command.h"
#include "berth/jobs/job_request.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/notify.h"
#include "berth/jobs/old_jobs.h"
#include "berth/lease/site_file.h"
#include "berth/supervise/model/job_end.h"
#include "berth/sys/child.h"
#include "berth/sys/clock.h"
#include "berth/sys/limits.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Task = KnownJob::Task;

constexpr const char* kRunnerName = "berth __jobs";
// A command holds its lease by files that are numbered from 100 on, one for each device.
constexpr rlim_t kOpenFiles = 256;
// A job that could not join the queue tries again after so long, then after twice as long.
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause = 60s;
// A job that cannot begin holds up no other. If so many with the same request cannot, the fault is not in the
// jobs.
constexpr std::size_t kBrokenJobs = 3;
// Nothing tells of the end of what a job has left behind when its `berth run` was killed.
constexpr std::chrono::milliseconds kStrayPeriod = 5s;
// Nothing tells of the end of a tenant.
constexpr std::chrono::milliseconds kTenantPeriod = 1s;
constexpr std::string_view kTenantLeft = "the program that it was submitted for has ended";
// Old jobs are forgotten once a day; a runner that lives for long asks now and then whether it is.
constexpr std::chrono::hours kForgetPeriod{1};

// A process that a job has left behind matters only if it is to be ended.
Task known_as(const TaskStanding& standing, std::uint64_t tenant) {
  if (is_over(standing))
    return standing.left_behind && (tenant != 0 || standing.asked_to_end) ? Task::left : Task::over;
  if (standing.phase == TaskPhase::running) return Task::running;
  return standing.in_queue ? Task::in_queue : Task::waiting;
}

std::int64_t wall_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
}

/// The process of a task that is in the queue or runs: a child of ours, or one that an earlier runner has
/// started.
struct LiveTask {
  TaskId id;
  std::optional<sys::Child> child{};
  sys::Descriptor ended{};  ///< readable once it has; of a child that is told by a signal
};

struct Pause {
  Clock::time_point until;
  std::chrono::milliseconds length;

  void lengthen() {
    length = std::clamp(length * 2, kFirstPause, kLongestPause);
    until = Clock::now() + length;
  }
};

/// Of jobs that ask for the same: those that could not get in the queue since one of them last did.
struct Failures {
  std::set<std::uint64_t> jobs;
  Pause pause{};
};

class JobRunner {
 public:
  JobRunner(JobSpool spool, std::string program, sys::Descriptor signals)
      : spool_(std::move(spool)), program_(std::move(program)), signals_(std::move(signals)) {}

  /// Returns when there is nothing left to start.
  Result<void> go() {
    for (;;) {
      BERTH_LET(auto lock, spool_.hold_as_runner());
      if (!lock) return {};
      BERTH_LET(auto bell, spool_.bell());
      bell_ = std::move(bell);
      BERTH_DO(read_all());
      while (has_work()) {
        forget_old();
        hold_back();
        end_what_tenants_left();
        start();
        // The last of them may just have been cancelled: then nothing would wake us.
        if (!has_work()) break;
        if (!wait()) return {};
      }
      // A process that saw the lock has left its job to us: look once more without it.
      lock.close();
      BERTH_DO(read_all());
      if (!has_work()) return {};
    }
  }

 private:
  void forget_old() {
    if (Clock::now() < next_forget_) return;
    next_forget_ = Clock::now() + kForgetPeriod;
    const auto files = leasing::read_site_files(leasing::standard_site_file_paths());
    if (files && files->policy.keep_jobs_s)
      forget_old_jobs(spool_, std::chrono::seconds(*files->policy.keep_jobs_s));
  }

  Result<void> read_all() {
    BERTH_LET(const auto numbers, spool_.numbers());
    for (const std::uint64_t number : numbers) {
      if (!over_.contains(number)) read_job(number);
    }
    return {};
  }

  // nullptr: not known, or over.
  KnownJob* known(std::uint64_t number) {
    const auto place = std::ranges::lower_bound(jobs_, number, {}, &KnownJob::number);
    return place != jobs_.end() && place->number == number ? &*place : nullptr;
  }

  // A job that cannot be read is left alone: `berth jobs` names it.
  void read_job(std::uint64_t number) {
    const auto job = spool_.job(number);
    if (!job || !*job) return drop(number);
    const auto standings = spool_.standings(number, **job);
    if (!standings) return drop(number);
    KnownJob* place = known(number);
    // Its last process may have been killed before it could send the notice.
    if (std::ranges::all_of(*standings, is_over)) tell_of_end(spool_, number, **job);
    if (std::ranges::all_of(*standings, [&](const TaskStanding& standing) {
          return known_as(standing, (*job)->tenant) == Task::over;
        }))
      return drop(number);
    if (place == nullptr) {
      const auto next = std::ranges::lower_bound(jobs_, number, {}, &KnownJob::number);
      place = &*jobs_.insert(next, {.number = number,
                                    .rivals = (*job)->rivals,
                                    .tasks = std::vector(standings->size(), Task::waiting),
                                    .at_once = (*job)->at_once,
                                    .indices = indices_of(**job)});
      if (!(*job)->after.empty() || !(*job)->after_ok.empty() || (*job)->not_before_s)
        conditions_.insert_or_assign(number, **job);
      if (!(*job)->notify.targets.empty() || (*job)->rerun || (*job)->tenant != 0) attended_.insert(number);
      if ((*job)->tenant != 0) take_in(*place, **job);
    }
    over_.erase(number);
    for (std::size_t i = 0; i < standings->size(); ++i) note(*place, i, (*standings)[i]);
  }

  void read(TaskId id) {
    KnownJob* job = known(id.job);
    if (job == nullptr || (!id.index && !job->indices.empty())) return read_job(id.job);
    const auto place = id.index ? std::ranges::lower_bound(job->indices, *id.index) : job->indices.begin();
    const auto task = static_cast<std::size_t>(place - job->indices.begin());
    const auto standing = spool_.standing(id);
    if (!standing || task >= job->tasks.size()) return read_job(id.job);
    note(*job, task, *standing);
    if (all_over(*job)) read_job(id.job);
  }

  static bool all_over(const KnownJob& job) {
    return std::ranges::all_of(job.tasks, [](Task task) { return task == Task::over; });
  }

  void drop(std::uint64_t number) {
    over_.insert(number);
    conditions_.erase(number);
    attended_.erase(number);
    of_tenants_.erase(number);
    std::erase_if(jobs_, [&](const KnownJob& job) { return job.number == number; });
  }

  static TaskId id_of(const KnownJob& job, std::size_t task) {
    return {job.number, job.indices.empty() ? std::nullopt : std::optional(job.indices[task])};
  }

  void note(KnownJob& job, std::size_t place, const TaskStanding& standing) {
    const TaskId id = id_of(job, place);
    Task task = known_as(standing, job.tenant);
    const auto live = std::ranges::find(live_, id, &LiveTask::id);
    const bool has_process = live != live_.end();
    // Our child has not come to say so yet.
    if (task == Task::waiting && has_process) task = Task::in_queue;
    if (task == Task::running) {
      failures_.erase(job.rivals);
      pauses_.erase(job.number);
    }
    job.tasks[place] = task;
    // `berth cancel` may have come before the process of the task could say its pid.
    if (standing.phase == TaskPhase::cancelled && has_process && live->child) live->child->kill(SIGTERM);
    if (task == Task::waiting || task == Task::over || has_process) return;
    LiveTask found{.id = id};
    const auto stat = sys::process_stat(static_cast<pid_t>(standing.pid));
    if (standing.boot == boot_ && stat && stat->start_ticks == standing.pid_start_ticks && !stat->ended())
      found.ended = sys::process_exit(static_cast<pid_t>(standing.pid));
    if (found.ended) {
      live_.push_back(std::move(found));
    } else {
      strays_.insert(id);
      if (standing.asked_to_end) end_stray(id, standing);
    }
  }

  // Its `berth run` would have done it.
  void end_stray(TaskId id, const TaskStanding& standing) {
    asked_strays_.insert(id);
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(sys::since_boot()) -
                       std::chrono::milliseconds(standing.last_boot_ms);
    if (standing.last_boot != boot_ || since < kTimeForOwnRest + time_grace_here()) return;
    for (const pid_t left : spool_.holders(id)) ::kill(left, SIGKILL);
  }

  // Of some jobs what runs as well: who else would tell that it was cut off, or run it again?
  bool has_work() const {
    return !asked_strays_.empty() || std::ranges::any_of(jobs_, [this](const KnownJob& job) {
      return attended_.contains(job.number) || std::ranges::any_of(job.tasks, [](Task task) {
               return task == Task::waiting || task == Task::in_queue;
             });
    });
  }

  // In the order of their numbers: a job comes after older ones only, so one pass sees all that follows.
  void hold_back() {
    for (auto next = conditions_.begin(); next != conditions_.end();) {
      const auto place = next++;
      const auto& [number, job] = *place;
      KnownJob* known_job = known(number);
      if (known_job == nullptr) continue;
      const auto still_known = [this](std::uint64_t other) { return known(other) != nullptr; };
      known_job->held_back = wall_seconds() < job.not_before_s.value_or(0) ||
                             std::ranges::any_of(job.after, still_known) ||
                             std::ranges::any_of(job.after_ok, still_known);
      if (known_job->held_back) continue;
      const auto failed =
          std::ranges::find_if_not(job.after_ok, [this](std::uint64_t other) { return is_ok(other); });
      if (failed == job.after_ok.end())
        conditions_.erase(place);
      else
        give_up(number, *failed);
    }
  }

  void take_in(KnownJob& place, const Job& job) {
    place.tenant = job.tenant;
    place.tenant_gpus = job.tenant_gpus;
    if (const auto request = read_job_request(job.request)) place.gpus = request->lease.request.request.count;
    of_tenants_.insert_or_assign(place.number, job);
  }

  // Waiting jobs are cancelled at once, running ones after the grace of their tenant.
  void end_what_tenants_left() {
    for (auto next = of_tenants_.begin(); next != of_tenants_.end();) {
      const auto place = next++;
      // A copy: a job that is over is dropped here.
      const NumberedJob job{place->first, place->second};
      const auto there = spool_.has_tenant(job.job.tenant);
      if (!there || *there) continue;
      if (KnownJob* known_job = known(job.number)) known_job->tenant_gone = true;
      const auto since = Clock::now() - left_.try_emplace(job.job.tenant, Clock::now()).first->second;
      end_of_tenant(job, since - std::chrono::seconds(job.job.tenant_grace_s));
    }
  }

  // `late`: how long its grace has been over.
  void end_of_tenant(const NumberedJob& job, Clock::duration late) {
    KnownJob* known_job = known(job.number);
    if (known_job == nullptr) return;
    known_job->held_back = true;
    const auto has = [&](Task task) {
      return std::ranges::find(known_job->tasks, task) != known_job->tasks.end();
    };
    if (late >= Clock::duration(0) || !(has(Task::running) || has(Task::left))) {
      if (ended_.insert(job.number).second) cancel(job);
    } else {
      for (std::size_t i = 0; i < known_job->tasks.size(); ++i) {
        if (known_job->tasks[i] == Task::in_queue)
          return cancel({job.number, job.job, id_of(*known_job, i).index});
      }
    }
  }

  void cancel(const NumberedJob& job) {
    // That it still runs for a moment is no fault.
    [[maybe_unused]] const auto asked = cancel_job(spool_, job, 0ms, kTenantLeft);
    read_job(job.number);
  }

  bool is_ok(std::uint64_t number) const {
    const auto job = spool_.job(number);
    if (!job || !*job) return false;
    const auto standings = spool_.standings(number, **job);
    return standings && counts_of(*standings).done == standings->size();
  }

  void give_up(std::uint64_t number, std::uint64_t failed) {
    TaskEvent event;
    event.kind = TaskEventKind::cancelled;
    event.reason = fmt::format("job {} did not end with status 0, as --after-ok asks", failed);
    // Where it cannot be written the job is asked for again when the next runner reads it.
    if (spool_.append({number, {}}, std::move(event))) read_job(number);
  }

  void start() {
    const auto now = Clock::now();
    for (KnownJob& job : jobs_) {
      const auto own = pauses_.find(job.number);
      const auto of_all = failures_.find(job.rivals);
      job.put_off = (own != pauses_.end() && now < own->second.until) ||
                    (of_all != failures_.end() && now < of_all->second.pause.until);
    }
    for (const TaskToStart& chosen : tasks_to_start(jobs_)) {
      KnownJob& job = jobs_[chosen.job];
      const TaskId id = id_of(job, chosen.task);
      if (auto child = spawn(id)) {
        live_.push_back({.id = id, .child = *std::move(child)});
        job.tasks[chosen.task] = Task::in_queue;
      } else {
        put_off(id, job.rivals, child.error().message);
      }
    }
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

  void put_off(TaskId id, const std::string& rivals, const std::string& reason) {
    pauses_[id.job].lengthen();
    Failures& failures = failures_[rivals];
    failures.jobs.insert(id.job);
    if (failures.jobs.size() >= kBrokenJobs) failures.pause.lengthen();
    const auto standing = spool_.standing(id);
    if (reason.empty() || !standing || standing->reason == reason) return;
    TaskEvent event;
    event.kind = TaskEventKind::put_off;
    event.reason = reason;
    // Where not even this can be written, the next try tells.
    [[maybe_unused]] const auto written = spool_.append(id, std::move(event));
  }

  // nullopt: nothing is due at any time.
  std::optional<Clock::time_point> next_due() const {
    std::optional<Clock::time_point> due;
    const auto now = Clock::now();
    const auto counts = [&](const Pause& pause) {
      if (pause.until > now && (!due || pause.until < *due)) due = pause.until;
    };
    for (const auto& [number, pause] : pauses_) counts(pause);
    for (const auto& [rivals, failures] : failures_) counts(failures.pause);
    for (const auto& [number, job] : conditions_) {
      const std::int64_t left_s = job.not_before_s.value_or(0) - wall_seconds();
      // The wall clock may be set meanwhile.
      const auto then =
          now + std::min<std::chrono::milliseconds>(std::chrono::seconds(left_s), kLongestPause);
      if (left_s > 0 && (!due || then < *due)) due = then;
    }
    if (!strays_.empty() && (!due || now + kStrayPeriod < *due)) due = now + kStrayPeriod;
    if (!of_tenants_.empty() && (!due || now + kTenantPeriod < *due)) due = now + kTenantPeriod;
    return due;
  }

  // Until something has changed, or is due. False: we are to end.
  bool wait() {
    std::vector<pollfd> ready{{bell_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    for (const LiveTask& each : live_) ready.push_back({each.ended.get(), POLLIN, 0});  // -1 is passed over
    const auto due = next_due();
    const auto left = due ? std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()) : 0ms;
    if (::poll(ready.data(), ready.size(), due ? static_cast<int>(std::max(left, 0ms).count()) : -1) < 0)
      return true;
    if (ready[1].revents != 0 && !handle_signals()) return false;
    std::vector<TaskId> ended;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const bool gone = live_[i].child ? live_[i].child->wait(0ms).has_value() : ready[i + 2].revents != 0;
      if (gone) ended.push_back(live_[i].id);
    }
    for (const TaskId id : ended) handle_end(id);
    if (ready[0].revents != 0) handle_bell();
    asked_strays_.clear();
    for (const TaskId id : std::exchange(strays_, {})) read(id);
    return true;
  }

  // False: we are asked to end.
  bool handle_signals() {
    signalfd_siginfo info{};
    bool goes_on = true;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info)
      goes_on = goes_on && info.ssi_signo == SIGCHLD;
    return goes_on;
  }

  void handle_end(TaskId id) {
    std::erase_if(live_, [&](const LiveTask& each) { return each.id == id; });
    read(id);
    KnownJob* job = known(id.job);
    const auto standing = spool_.standing(id);
    // It has ended without having come to start, and nobody said that it should.
    if (job != nullptr && standing && known_as(*standing, job->tenant) == Task::waiting)
      put_off(id, job->rivals, "");
  }

  void handle_bell() {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(bell_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    if (static_cast<std::size_t>(got) == buffer.size()) {
      // More than fits: what it says is cut off somewhere.
      while (::read(bell_.get(), buffer.data(), buffer.size()) > 0) continue;
      over_.clear();
      [[maybe_unused]] const auto read = read_all();
      return;
    }
    std::set<TaskId> news;
    std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (const auto id = task_id_from_text(line)) news.insert(*id);
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    for (const TaskId id : news) read(id);
  }

  JobSpool spool_;
  std::string program_;
  sys::Descriptor signals_;
  sys::Descriptor bell_;
  std::string boot_ = boot_id();
  std::vector<KnownJob> jobs_;  ///< those that are not over, by number
  std::set<std::uint64_t> over_;
  /// Of those that are not over, those of which somebody wants to be told, or that are run again by
  /// themselves.
  std::set<std::uint64_t> attended_;
  std::vector<LiveTask> live_;
  std::set<TaskId> strays_;                ///< they have a lock, and no process of whose end we would be told
  std::set<TaskId> asked_strays_;          ///< of these, those that are to end
  std::map<std::uint64_t, Pause> pauses_;  ///< of jobs that could not get in the queue
  std::map<std::string, Failures> failures_;  ///< by what they ask for
  Clock::time_point next_forget_{};
  std::map<std::uint64_t, Job> of_tenants_;          ///< those of tenants, that are not over
  std::map<std::uint64_t, Clock::time_point> left_;  ///< tenants, and when they were seen to have gone
  std::set<std::uint64_t> ended_;                    ///< jobs that were asked to end with their tenant
  std::map<std::uint64_t, Job> conditions_;          ///< those that wait for other jobs, or for their time
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
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.arguments = "FOLDER";
    return syntax;
  }

  Result<command::Output> run(command::Environment&, const std::vector<std::string>& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "which folder?");
    BERTH_LET(auto spool, JobSpool::open(words.front()));
    BERTH_LET(auto program, command::program_path());
    BERTH_LET(auto signals, runner_signals());
    // A file system that is somebody's working directory cannot be unmounted.
    if (::chdir("/") != 0) return sys::fail_errno("leaving the working directory");
    // The limits of the shell that started this runner are not for the jobs of other shells.
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
  BERTH_LET(const bool there, spool.has_runner());
  if (there) {
    spool.ring(news);
    return {};
  }
  BERTH_DO(check_limits());
  sys::Command command;
  BERTH_LET(command.program, command::program_path());
  command.arguments = {"__jobs", spool.path()};
  const auto runner = sys::Child::spawn(command);
  if (!runner) return std::unexpected(context(runner.error(), "starting the runner of your jobs"));
  return {};
}

std::unique_ptr<command::Command> make_job_runner() {
  return std::make_unique<Jobs>();
}

}  // namespace berth::jobs
