#include "berth/jobs/model/runner_step.h"

#include <algorithm>
#include <set>
#include <utility>

#include "berth/base/record.h"
#include "berth/job/job.h"
#include "berth/jobs/model/runner_holds.h"

namespace berth::jobs::runner {
namespace {

using namespace std::chrono_literals;
using TaskStage = KnownJob::TaskStage;

// A job that cannot begin holds up no other. If so many with the same request cannot, the fault is
// not in the jobs.
constexpr std::size_t kBrokenJobs = 3;
// Nothing tells when the lock of a task is free that something holds longer than its `berth run`.
// Most often that is about to end: the first look comes soon, and each next one after twice as
// long.
constexpr SteadyTime kFirstStrayPeriod = 20ms;
constexpr SteadyTime kStrayPeriod = 5s;
// Old jobs are forgotten once a day; a runner that lives for long asks now and then whether it is.
constexpr SteadyTime kForgetPeriod = 1h;

// A process that a job has left behind matters only if it is to be ended.
TaskStage known_as(const TaskStanding& standing, std::uint64_t tenant) {
  if (is_over(standing))
    return standing.left_behind && (tenant != 0 || standing.asked_to_end) ? TaskStage::left : TaskStage::over;
  if (standing.phase == TaskPhase::running) return TaskStage::running;
  if (standing.in_queue) return TaskStage::in_queue;
  return standing.on_hold ? TaskStage::on_hold : TaskStage::waiting;
}

TaskId id_of(const KnownJob& job, std::size_t task) {
  return {job.number, job.indices.empty() ? std::nullopt : std::optional(job.indices[task])};
}

std::optional<std::size_t> place_of(const KnownJob& job, TaskId id) {
  if (id.index.has_value() == job.indices.empty()) return std::nullopt;
  if (!id.index) return 0;
  const auto place = std::ranges::lower_bound(job.indices, *id.index);
  if (place == job.indices.end() || *place != *id.index) return std::nullopt;
  return static_cast<std::size_t>(place - job.indices.begin());
}

bool has_any(const KnownJob& job, TaskStage task) {
  return std::ranges::find(job.tasks, task) != job.tasks.end();
}

bool is_stray(const Process& process) {
  return std::holds_alternative<Stray>(process);
}

// A job that is over, or asks for something else now, says nothing of those that ask for the same.
void forget_failures(State& state, std::uint64_t number) {
  state.pauses.erase(number);
  for (auto& [rivals, failures] : state.failures) failures.jobs.erase(number);
  std::erase_if(state.failures, [](const auto& each) { return each.second.jobs.empty(); });
}

void drop(State& state, std::uint64_t number) {
  state.over.insert(number);
  forget_failures(state, number);
  state.conditions.erase(number);
  state.attended.erase(number);
  state.graces.erase(number);
  state.ended.erase(number);
  std::erase_if(state.jobs, [&](const KnownJob& job) { return job.number == number; });
  std::erase_if(state.processes,
                [&](const auto& each) { return each.first.job == number && is_stray(each.second); });
}

// Of some jobs what runs as well: who else would tell that it was cut off, or run it again?
bool has_work(const State& state) {
  if (state.unlisted || !state.unread.empty()) return true;
  return std::ranges::any_of(state.processes,
                             [](const auto& each) {
                               const auto* stray = std::get_if<Stray>(&each.second);
                               return stray != nullptr && stray->is_to_end;
                             }) ||
         std::ranges::any_of(state.jobs, [&](const KnownJob& job) {
           return state.attended.contains(job.number) || has_any(job, TaskStage::waiting) ||
                  has_any(job, TaskStage::in_queue);
         });
}

/// A rule for each event.
class RunnerRules {
 public:
  RunnerRules(State state, SteadyTime now, std::int64_t wall_s)
      : state_(std::move(state)), now_(now), wall_s_(wall_s) {}

  Step step(const Event& what) && {
    std::visit([this](const auto& each) { on(each); }, what);
    return {std::move(state_), std::move(actions_)};
  }

 private:
  // --- what is in the spool

  void on(const RunnerBegun&) {
    state_.stage = Begins{};
    // Another runner may have heard of them meanwhile, and been killed.
    list_all();
  }
  void on(const JobsListed& listed) {
    state_.unlisted.reset();
    for (const std::uint64_t number : listed.numbers)
      if (!state_.over.contains(number)) act(ReadJob{number});
  }

  void on(const JobsNotListed&) {
    if (!state_.unlisted) state_.unlisted.emplace();
    lengthen(*state_.unlisted, now_);
  }

  // A file that is no job is left alone: `berth jobs` names it.
  void on(const JobRead& read) {
    state_.unread.erase(read.number);
    if (!read.job) return drop(state_, read.number);
    const Job& job = *read.job;
    KnownJob* known_job = known(read.number);
    const bool has_gone = std::ranges::all_of(read.standings, [&](const TaskStanding& standing) {
      return known_as(standing, job.tenant) == TaskStage::over;
    });
    if (has_gone && known_job != nullptr) note_all(*known_job, read.standings);
    // The process that ran it may have been killed before it could tell.
    if (std::ranges::all_of(read.standings, is_over)) act(TellEnd{read.number});
    if (has_gone) return drop(state_, read.number);
    if (known_job == nullptr) known_job = &add(read, job);
    // Its user may have edited it since it was read first.
    if (known_job->rivals != job.rivals) forget_failures(state_, read.number);
    known_job->rivals = job.rivals;
    known_job->gpus = read.gpus;
    known_job->position = read.position;
    state_.over.erase(read.number);
    note_all(*known_job, read.standings);
  }
  void on(const StillOver& old) {
    state_.unread.erase(old.number);
    drop(state_, old.number);
  }
  // It may wait or run: it stays known, and what comes after it goes on waiting.
  void on(const NotRead& job) {
    lengthen(state_.unread[job.number], now_);
    for (auto& [number, conditions] : state_.conditions)
      if (std::holds_alternative<EndingsAsked>(conditions.stage)) conditions.stage = ConditionsPending{};
  }
  void note_all(KnownJob& job, const std::vector<TaskStanding>& standings) {
    for (std::size_t i = 0; i < standings.size(); ++i) note(job, i, standings[i]);
  }

  KnownJob& add(const JobRead& read, const Job& job) {
    if (!job.after.empty() || !job.after_ok.empty() || !job.after_fail.empty() || job.not_before_s)
      state_.conditions.insert_or_assign(
          read.number, Conditions{job.after, job.after_ok, job.after_fail, job.not_before_s.value_or(0)});
    if (!job.notify.targets.empty() || job.rerun || job.tenant != 0) state_.attended.insert(read.number);
    if (job.tenant != 0)
      state_.graces.insert_or_assign(read.number,
                                     std::chrono::seconds(std::min(job.tenant_grace_s, kLongestDelayS)));
    const auto place = std::ranges::lower_bound(state_.jobs, read.number, {}, &KnownJob::number);
    return *state_.jobs.insert(place, {.number = read.number,
                                       .rivals = job.rivals,
                                       .tasks = std::vector(read.standings.size(), TaskStage::waiting),
                                       .at_once = job.at_once,
                                       .indices = indices_of(job),
                                       .tenant = job.tenant,
                                       .tenant_gpus = job.tenant_gpus,
                                       .gpus = read.gpus,
                                       .position = read.position,
                                       .name = job.name,
                                       .singleton = job.singleton});
  }

  // nullptr: not known, or over.
  KnownJob* known(std::uint64_t number) {
    const auto place = std::ranges::lower_bound(state_.jobs, number, {}, &KnownJob::number);
    return place != state_.jobs.end() && place->number == number ? &*place : nullptr;
  }

  void on(const TaskRead& read) { take(read.id, read.standing); }

  // The job, where that is not over.
  KnownJob* take(TaskId id, const std::optional<TaskStanding>& standing) {
    KnownJob* job = known(id.job);
    const auto task = job == nullptr ? std::nullopt : place_of(*job, id);
    if (!task || !standing) {
      act(ReadJob{id.job});
      return nullptr;
    }
    note(*job, *task, *standing);
    if (std::ranges::any_of(job->tasks, [](TaskStage each) { return each != TaskStage::over; })) return job;
    act(ReadJob{id.job});
    return nullptr;
  }

  void note(KnownJob& job, std::size_t place, const TaskStanding& standing) {
    const TaskId id = id_of(job, place);
    auto process = state_.processes.find(id);
    // Something else may have its lock for a moment more.
    if (standing.handed_on && process != state_.processes.end() && !is_stray(process->second)) {
      act(LetBe{id});
      state_.processes.erase(process);
      process = state_.processes.end();
    }
    const bool has_process = process != state_.processes.end() && !is_stray(process->second);
    TaskStage task = known_as(standing, job.tenant);
    // Our child has not come to say so yet.
    if ((task == TaskStage::waiting || task == TaskStage::on_hold) && has_process) task = TaskStage::in_queue;
    if (task == TaskStage::running) {
      state_.failures.erase(job.rivals);
      state_.pauses.erase(job.number);
    }
    job.tasks[place] = task;
    // The cancel may have come before the process of the task could say its pid.
    const bool is_to_leave =
        standing.phase == TaskPhase::cancelled || (standing.on_hold && !standing.passes_to);
    if (is_to_leave && has_process && std::holds_alternative<Child>(process->second)) act(EndChild{id});
    if (has_process) return;
    Backoff pause;
    if (process != state_.processes.end()) {
      pause = std::get<Stray>(process->second).pause;
      state_.processes.erase(process);
    }
    if (task == TaskStage::waiting || task == TaskStage::on_hold || task == TaskStage::over) return;
    state_.processes.insert_or_assign(id, Sought{pause});
    act(Watch{id, standing});
  }

  // --- processes

  void on(const Watched& watched) { state_.processes.insert_or_assign(watched.id, Adopted{}); }
  void on(const NotWatched& stray) {
    Process& process = state_.processes[stray.id];
    const auto* sought = std::get_if<Sought>(&process);
    Backoff pause = sought == nullptr ? Backoff{} : sought->pause;
    lengthen(pause, now_, kFirstStrayPeriod, kStrayPeriod);
    process = Stray{pause, stray.asked_to_end};
    // Its `berth run` would have done it.
    if (stray.asked_to_end && stray.overdue) act(KillLeft{stray.id});
  }

  void on(const ProcessEnded& ended) {
    state_.processes.erase(ended.id);
    const KnownJob* job = take(ended.id, ended.standing);
    if (job == nullptr || known_as(*ended.standing, job->tenant) != TaskStage::waiting) return;
    // It joins the queue again at once. But its next process may end before it has taken the task.
    if (ended.standing->gave_way && state_.pauses.try_emplace(job->number, Backoff{now_}).second) return;
    // It has ended without having come to start, and nobody said that it should.
    put_off(*job);
  }

  void on(const NotSpawned& failed) {
    state_.processes.erase(failed.id);
    if (KnownJob* job = known(failed.id.job)) {
      if (const auto place = place_of(*job, failed.id)) job->tasks[*place] = TaskStage::waiting;
      put_off(*job);
    }
    if (!failed.reason.empty() && failed.reason != failed.told) act(NotePutOff{failed.id, failed.reason});
  }

  void put_off(const KnownJob& job) {
    lengthen(state_.pauses[job.number], now_);
    Failures& failures = state_.failures[job.rivals];
    failures.jobs.insert(job.number);
    if (failures.jobs.size() >= kBrokenJobs) lengthen(failures.pause, now_);
  }

  void on(const Rung& rung) {
    for (const TaskId id : rung.tasks) {
      const KnownJob* job = known(id.job);
      // A job that does not run may have been edited.
      if (job == nullptr ||
          (!id.index && (!job->indices.empty() || job->tasks.front() != TaskStage::running)))
        act(ReadJob{id.job});
      else
        act(ReadTask{id});
    }
  }
  void on(const Overheard&) { list_all(); }
  // Without news, what was over is over: ten thousand old jobs are not read twice.
  void on(const HasLetGo& gone) { gone.rung ? list_all() : act(List{}); }
  void list_all() {
    state_.over.clear();
    act(List{});
  }

  // --- what no event tells of

  // After the first sleep at the earliest: what can start does not wait until old jobs are read.
  void on(const Woken&) {
    if (now_ >= state_.next_forget) {
      state_.next_forget = now_ + kForgetPeriod;
      act(ForgetOld{});
    }
    look_around();
  }

  void look_around() {
    if (state_.unlisted && now_ >= state_.unlisted->until) act(List{});
    for (const auto& [number, pause] : state_.unread)
      if (now_ >= pause.until) act(ReadJob{number});
    for (auto& each : state_.processes) {
      auto* stray = std::get_if<Stray>(&each.second);
      if (stray == nullptr) continue;
      lengthen(stray->pause, now_, kFirstStrayPeriod, kStrayPeriod);
      act(ReadTask{each.first});
    }
    for (const auto& [number, conditions] : state_.conditions)
      // The disk may not have taken it before.
      if (const auto* refused = std::get_if<ConditionFailed>(&conditions.stage))
        act(GiveUp{number, refused->reproach});
    std::set<std::uint64_t> tenants;
    for (const KnownJob& job : state_.jobs)
      if (job.tenant != 0) tenants.insert(job.tenant);
    if (!tenants.empty()) act(AskTenants{std::move(tenants)});
  }

  // Waiting tasks are cancelled at once, and running ones after the grace of their tenant.
  void on(const TenantsSeen& seen) {
    std::set<std::uint64_t> news;
    for (const std::uint64_t tenant : seen.gone)
      if (state_.gone.try_emplace(tenant, now_).second) news.insert(tenant);
    for (const KnownJob& job : state_.jobs) {
      const auto gone = state_.gone.find(job.tenant);
      if (job.tenant == 0 || gone == state_.gone.end()) continue;
      // A task may have started, and not have come to say so: it has its grace.
      if (news.contains(job.tenant)) {
        act(ReadJob{job.number});
        continue;
      }
      const bool is_late = now_ - gone->second >= state_.graces[job.number];
      if (is_late || !(has_any(job, TaskStage::running) || has_any(job, TaskStage::left))) {
        if (state_.ended.insert(job.number).second) act(Cancel{job.number});
        continue;
      }
      for (std::size_t i = 0; i < job.tasks.size(); ++i)
        if (job.tasks[i] == TaskStage::in_queue) act(Cancel{job.number, id_of(job, i).index});
    }
    if (!news.empty()) act(AskTenants{std::move(news)});
  }

  // --- what may start

  void on(const Settled&) {
    if (std::holds_alternative<Rests>(state_.stage))
      return act(has_work(state_) ? Action(BeginAgain{}) : Leave{});
    if (!has_work(state_)) {
      // A process that saw the lock has left its job to us: look once more without it.
      state_.stage = Rests{};
      return act(LetGo{});
    }
    if (std::holds_alternative<Begins>(state_.stage)) {
      state_.stage = Works{};
      look_around();
    }
    for (AskWell& each : hold_jobs(state_, now_, wall_s_)) act(std::move(each));
    if (!actions_.empty()) return;
    for (const TaskToStart& chosen : tasks_to_start(state_.jobs)) {
      KnownJob& job = state_.jobs[chosen.job];
      const TaskId id = id_of(job, chosen.task);
      job.tasks[chosen.task] = TaskStage::in_queue;
      state_.processes.insert_or_assign(id, Child{});
      act(Spawn{id});
    }
    if (actions_.empty()) act(Sleep{next_due(state_, now_, wall_s_)});
  }

  void on(const WellKnown& known_now) {
    const auto place = state_.conditions.find(known_now.number);
    if (place == state_.conditions.end()) return;
    if (!known_now.reproach) return (void)state_.conditions.erase(place);
    place->second.stage = ConditionFailed{*known_now.reproach};
    act(GiveUp{known_now.number, *known_now.reproach});
  }

  void act(Action action) { actions_.push_back(std::move(action)); }

  State state_;
  SteadyTime now_;
  std::int64_t wall_s_;
  std::vector<Action> actions_{};
};

}  // namespace

Step next(State state, const TimedEvent& event) {
  return RunnerRules(std::move(state), event.now, event.wall_s).step(event.what);
}

}  // namespace berth::jobs::runner
