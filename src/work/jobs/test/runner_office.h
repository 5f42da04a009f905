#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/model/runner_step.h"

// A spool and its runner, without a process.
namespace berth::runner_test {

using namespace jobs::runner;
using namespace std::chrono_literals;

inline TaskEvent wrote(TaskEventKind kind) {
  TaskEvent event;
  event.kind = kind;
  return event;
}

/// What lives of a task.
enum class Alive {
  nothing,
  young,  ///< its `berth run`, which has not taken it yet
  run,    ///< its `berth run`
  rest,   ///< only what its command has started: its `berth run` was killed, or has ended
};

/// A spool with its jobs, and the runner that works there: `did` is what the runner did.
class Office {
 public:
  /// A job with this number. A task stands in the queue once its process was started.
  Office& job(std::uint64_t number, const std::function<void(Job&)>& is_so = [](Job&) {}) {
    Job added;
    added.rivals = "all";
    is_so(added);
    jobs[number] = added;
    for (const TaskId id : tasks_of(number, added)) files.try_emplace(id);
    return *this;
  }

  // --- what happens to tasks

  Office& takes(TaskId id) {
    alive[id] = Alive::run;
    files[id].push_back(wrote(TaskEventKind::taken));
    return *this;
  }
  Office& starts(TaskId id) {
    files[id].push_back(wrote(TaskEventKind::started));
    files[id].back().rerun = jobs[id.job].rerun;
    return rings(id);
  }
  /// Its command, and its `berth run`.
  Office& ends(TaskId id, int status = 0) {
    files[id].push_back(wrote(TaskEventKind::ended));
    files[id].back().exit_status = status;
    alive[id] = Alive::nothing;
    return heard(id);
  }
  /// The same with a failure, after which it is run again. `rest`: what has its lock then.
  Office& fails_and_is_retried(TaskId id, Alive rest) {
    files[id].push_back(wrote(TaskEventKind::ended));
    files[id].back().exit_status = 1;
    files[id].push_back(wrote(TaskEventKind::retried));
    return dies(id, rest);
  }
  Office& gives_way(TaskId id) {
    files[id].push_back(wrote(TaskEventKind::ended));
    files[id].push_back(wrote(TaskEventKind::preempted));
    return dies(id);
  }
  /// Without a word.
  Office& dies(TaskId id, Alive rest = Alive::nothing) {
    alive[id] = rest;
    return heard(id);
  }
  Office& cancelled(TaskId id) {
    files[id].push_back(wrote(TaskEventKind::cancelled));
    return rings(id);
  }
  Office& held(TaskId id, std::optional<TaskId> passes_to = {}) {
    if (passes_to) {
      files[id].push_back(wrote(TaskEventKind::passed));
      files[id].back().to = passes_to;
    }
    files[id].push_back(wrote(TaskEventKind::held));
    return rings(id);
  }
  Office& again(TaskId id) {
    files[id].push_back(wrote(TaskEventKind::again));
    return rings(id);
  }
  Office& let_go(TaskId id) {
    files[id].push_back(wrote(TaskEventKind::let_go));
    return rings(id);
  }
  Office& moved(TaskId id, std::string position) {
    files[id].push_back(wrote(TaskEventKind::moved));
    files[id].back().position = std::move(position);
    return rings(id);
  }
  /// Its process gives it up for another task, whose command begins. `rest`: what has its lock
  /// then.
  Office& hands_on(TaskId from, TaskId to, Alive rest = Alive::nothing) {
    files[from].push_back(wrote(TaskEventKind::taken));
    files[from].back().handed_on = true;
    alive[from] = rest;
    takes(to);
    starts(to);
    return rings(from);
  }
  Office& rings(TaskId id) {
    news_.emplace_back(Rung{{id}});
    return *this;
  }
  Office& passes(SteadyTime time) {
    now += time;
    wall_s += time / 1s;
    return *this;
  }

  // --- the runner

  /// A new one, which knows nothing. What an earlier one has started lives on.
  Office& begins() {
    state = {};
    news_.clear();
    watched_.clear();
    children_.clear();
    tries_.clear();
    // Which of two processes takes a task, its lock decides.
    for (auto& [id, what] : alive)
      if (what == Alive::young) what = Alive::nothing;
    perform(BeginAgain{});
    return runs();
  }
  /// Until it sleeps or has left.
  Office& runs() {
    asleep = false;
    rounds_ = 0;
    while (!left && !asleep) {
      REQUIRE_MESSAGE(++rounds_ < 10'000, "it never comes to rest");
      Event what = Settled{};
      if (!news_.empty()) {
        what = news_.front();
        news_.pop_front();
      }
      Step step = next(std::move(state), {now, wall_s, what});
      state = std::move(step.state);
      for (const Action& action : step.actions)
        std::visit([this](const auto& each) { perform(each); }, action);
    }
    return *this;
  }
  Office& wakes() {
    news_.emplace_back(jobs::runner::Woken{});
    return runs();
  }
  Office& told(Event what) {
    news_.push_back(std::move(what));
    return *this;
  }

  TaskStanding standing(TaskId id) const {
    TaskStanding found = standing_of(files.at(id), is_held(id));
    found.taker.pid = 1;
    if (id.index && found.phase == TaskPhase::waiting && whole_cancelled.contains(id.job))
      found.phase = TaskPhase::cancelled;
    return found;
  }
  std::vector<TaskStanding> standings(std::uint64_t number) const {
    std::vector<TaskStanding> found;
    for (const TaskId id : tasks_of(number, jobs.at(number))) found.push_back(standing(id));
    return found;
  }
  bool is_held(TaskId id) const {
    const auto found = alive.find(id);
    return found != alive.end() && (found->second == Alive::run || found->second == Alive::rest);
  }
  /// How often this runner has tried in vain to read the job since it last could.
  int tries(std::uint64_t number) const {
    const auto found = tries_.find(number);
    return found == tries_.end() ? 0 : found->second;
  }
  /// What it did since it was asked last.
  std::string lately() { return std::exchange(did, ""); }

  std::map<std::uint64_t, Job> jobs{};
  std::map<TaskId, std::vector<TaskEvent>> files{};
  std::map<TaskId, Alive> alive{};
  std::set<std::uint64_t> whole_cancelled{};
  std::set<std::uint64_t> tenants{};  ///< those that live
  SteadyTime now = 1h;
  std::int64_t wall_s = 1'000'000;
  State state{};
  std::string did{};
  bool left = false;
  bool asleep = false;
  std::int64_t sleeps_ms = 0;            ///< 0: until something happens
  bool is_runner_there = false;          ///< another one
  bool rung_unread = false;              ///< somebody has rung, and it was about to leave
  std::set<std::uint64_t> unreadable{};  ///< now
  std::set<std::uint64_t> still_over{};  ///< as an earlier runner has found them
  bool unlistable = false;               ///< the spool, now
  bool spawns = true;
  bool takes_at_once = true;  ///< what it starts
  bool writes = true;
  bool overdue = false;  ///< whoever was asked to end has had the time for it
  std::function<void()> on_let_go = [] {};
  std::function<void(TaskId)> on_spawn = [](TaskId) {};
  std::function<void(std::uint64_t)> on_read{};  ///< after it was read

 private:
  // The kernel tells of the end of children and of what is watched.
  Office& heard(TaskId id) {
    if (children_.erase(id) + watched_.erase(id) != 0) news_.emplace_back(ProcessEnded{id, standing(id)});
    return *this;
  }
  void say(const std::string& what) { did += (did.empty() ? "" : "; ") + what; }
  void read(std::uint64_t number) {
    if (unreadable.contains(number)) return not_read(number);
    tries_.erase(number);
    if (still_over.contains(number)) return (void)news_.emplace_back(StillOver{number});
    JobRead answer{.number = number};
    if (const auto found = jobs.find(number); found != jobs.end()) {
      answer.job = found->second;
      answer.standings = standings(number);
      answer.position = answer.standings.front().position;
    }
    news_.emplace_back(std::move(answer));
    if (on_read) on_read(number);
  }
  void not_read(std::uint64_t number) {
    ++tries_[number];
    news_.emplace_back(NotRead{number});
  }
  void cancel(std::uint64_t number, std::optional<unsigned> index = {}) {
    for (const TaskId id : tasks_of(number, jobs[number])) {
      if (index && id.index != index) continue;
      if (is_over(standing(id))) continue;
      files[id].push_back(wrote(TaskEventKind::cancelled));
      // As the task's own process does when it is asked to.
      if (alive[id] == Alive::run) {
        if (standing(id).phase == TaskPhase::running) files[id].push_back(wrote(TaskEventKind::ended));
        alive[id] = Alive::nothing;
        heard(id);
      }
    }
  }

  void perform(const BeginAgain&) {
    if (is_runner_there) {
      left = true;
      return say("leaves to another");
    }
    left = false;
    news_.emplace_back(RunnerBegun{});
  }
  void perform(const List&) {
    if (unlistable) return (void)news_.emplace_back(JobsNotListed{});
    JobsListed listed;
    for (const auto& [number, job] : jobs) listed.numbers.push_back(number);
    news_.emplace_back(std::move(listed));
  }
  void perform(const ReadJob& what) { read(what.number); }
  void perform(const ReadTask& what) {
    const bool is_read = !unreadable.contains(what.id.job);
    news_.emplace_back(TaskRead{what.id, is_read ? std::optional(standing(what.id)) : std::nullopt});
  }
  void perform(const TellEnd& what) {
    // Once, whoever tells it.
    if (told_ends_.insert(what.number).second) say(fmt::format("tells the end of {}", what.number));
  }
  void perform(const Watch& what) {
    if (alive[what.id] == Alive::run) {
      watched_.insert(what.id);
      news_.emplace_back(Watched{what.id});
      return say("watches " + to_text(what.id));
    }
    news_.emplace_back(NotWatched{what.id, what.standing.asked_to_end, overdue});
  }
  void perform(const EndChild& what) {
    say("SIGTERM to " + to_text(what.id));
    alive[what.id] = Alive::nothing;
    heard(what.id);
  }
  void perform(const LetBe& what) {
    say("lets be " + to_text(what.id));
    children_.erase(what.id);
    watched_.erase(what.id);
  }
  void perform(const KillLeft& what) {
    say("kills what is left of " + to_text(what.id));
    alive[what.id] = Alive::nothing;
  }
  void perform(const AskTenants& what) {
    TenantsSeen seen;
    for (const std::uint64_t tenant : what.tenants)
      if (!tenants.contains(tenant)) seen.gone.insert(tenant);
    news_.emplace_back(std::move(seen));
  }
  void perform(const AskWell& what) {
    const auto is_well = [&](std::uint64_t other) {
      const auto of_other = standings(other);
      return counts_of(of_other).done == of_other.size();
    };
    std::optional<Reproach> reproach;
    for (const auto* others : {&what.jobs, &what.failed})
      for (const std::uint64_t other : *others)
        if (unreadable.contains(other)) return not_read(other);
    for (const std::uint64_t other : what.failed)
      if (is_well(other)) reproach = Reproach{other, true};
    for (const std::uint64_t other : what.jobs)
      if (!is_well(other)) reproach = Reproach{other, false};
    news_.emplace_back(WellKnown{what.number, reproach});
  }
  void perform(const GiveUp& what) {
    say(fmt::format("gives up {} for {}{}", what.number, what.reproach.job,
                    what.reproach.ended_well ? ", which ended well" : ""));
    if (!writes) return;
    whole_cancelled.insert(what.number);
    cancel(what.number);
    read(what.number);
  }
  void perform(const Cancel& what) {
    say("cancels " + to_text(TaskId{what.number, what.index}));
    cancel(what.number, what.index);
    read(what.number);
  }
  void perform(const Spawn& what) {
    if (!spawns) return (void)news_.emplace_back(NotSpawned{what.id, "no memory", standing(what.id).reason});
    say("starts " + to_text(what.id));
    on_spawn(what.id);
    children_.insert(what.id);
    alive[what.id] = Alive::young;
    if (takes_at_once) takes(what.id);
  }
  void perform(const NotePutOff& what) {
    say(fmt::format("puts off {}: {}", to_text(what.id), what.reason));
    files[what.id].push_back(wrote(TaskEventKind::put_off));
    files[what.id].back().reason = what.reason;
  }
  void perform(const ForgetOld&) {}
  void perform(const Sleep& what) {
    asleep = true;
    sleeps_ms = what.until ? std::chrono::floor<std::chrono::milliseconds>(*what.until - now).count() : 0;
  }
  void perform(const LetGo&) {
    say("lets go");
    on_let_go();
    news_.emplace_back(HasLetGo{std::exchange(rung_unread, false)});
  }
  void perform(const Leave&) {
    left = true;
    say("leaves");
  }

  std::deque<Event> news_{};
  std::set<TaskId> children_{};
  std::set<TaskId> watched_{};
  std::set<std::uint64_t> told_ends_{};
  std::map<std::uint64_t, int> tries_{};
  int rounds_ = 0;
};

inline constexpr TaskId task(std::uint64_t number) {
  return {number, {}};
}

}  // namespace berth::runner_test
