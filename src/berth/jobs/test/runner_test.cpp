#include "berth/jobs/model/runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::runner_test {
namespace {

using namespace runner;
using runner::Moment;  // berth::Moment is another one
using namespace std::chrono_literals;

TaskEvent wrote(TaskEventKind kind) {
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
    files[id].push_back(wrote(TaskEventKind::cancelled));
    files[id].back().holds = true;
    return rings(id);
  }
  Office& let_go(TaskId id) {
    files[id].push_back(wrote(TaskEventKind::again));
    return rings(id);
  }
  Office& moved(TaskId id, std::string position) {
    files[id].push_back(wrote(TaskEventKind::moved));
    files[id].back().position = std::move(position);
    return rings(id);
  }
  /// Its process gives it up for another task, whose command begins.
  Office& hands_on(TaskId from, TaskId to) {
    files[from].push_back(wrote(TaskEventKind::taken));
    files[from].back().handed_on = true;
    alive[from] = Alive::nothing;
    takes(to);
    starts(to);
    return rings(from);
  }
  Office& rings(TaskId id) {
    news_.emplace_back(Rung{{id}});
    return *this;
  }
  Office& passes(Moment time) {
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
      What what = Settled{};
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
    news_.emplace_back(Woken{});
    return runs();
  }
  Office& told(What what) {
    news_.push_back(std::move(what));
    return *this;
  }

  TaskStanding standing(TaskId id) const {
    TaskStanding found = standing_of(files.at(id), is_held(id));
    found.pid = 1;
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
  /// What it did since it was asked last.
  std::string lately() { return std::exchange(did, ""); }

  std::map<std::uint64_t, Job> jobs{};
  std::map<TaskId, std::vector<TaskEvent>> files{};
  std::map<TaskId, Alive> alive{};
  std::set<std::uint64_t> whole_cancelled{};
  std::set<std::uint64_t> tenants{};  ///< those that live
  Moment now = 1h;
  std::int64_t wall_s = 1'000'000;
  State state{};
  std::string did{};
  bool left = false;
  bool asleep = false;
  std::int64_t sleeps_ms = 0;            ///< 0: until something happens
  bool is_runner_there = false;          ///< another one
  bool rung_unread = false;              ///< somebody has rung, and it was about to leave
  std::set<std::uint64_t> unreadable{};  ///< now
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
    if (unreadable.contains(number)) return (void)news_.emplace_back(NotRead{number});
    JobRead answer{.number = number};
    if (const auto found = jobs.find(number); found != jobs.end()) {
      answer.job = found->second;
      answer.standings = standings(number);
      answer.position = answer.standings.front().position;
    }
    news_.emplace_back(std::move(answer));
    if (on_read) on_read(number);
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
    news_.emplace_back(Begun{});
  }
  void perform(const List&) {
    Listed listed;
    for (const auto& [number, job] : jobs) listed.numbers.push_back(number);
    news_.emplace_back(std::move(listed));
  }
  void perform(const ReadJob& what) { read(what.number); }
  void perform(const ReadTask& what) { news_.emplace_back(TaskRead{what.id, standing(what.id)}); }
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
        if (unreadable.contains(other)) return (void)news_.emplace_back(NotRead{other});
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
    sleeps_ms = what.until ? (*what.until - now).count() : 0;
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

  std::deque<What> news_{};
  std::set<TaskId> children_{};
  std::set<TaskId> watched_{};
  std::set<std::uint64_t> told_ends_{};
  int rounds_ = 0;
};

constexpr TaskId task(std::uint64_t number) {
  return {number, {}};
}

}  // namespace

TEST_CASE("of jobs that ask for the same one is in the queue, and the next when its command begins") {
  Office office;
  CHECK(office.job(1).job(2).job(3, [](Job& job) { job.rivals = "other"; }).begins().lately() ==
        "starts 1; starts 3");
  CHECK(office.wakes().lately().empty());
  CHECK(office.starts(task(1)).wakes().lately() == "starts 2");
  CHECK(office.sleeps_ms == 0);
}

TEST_CASE("a runner without work lets another be the runner, looks once more, and leaves") {
  Office office;
  CHECK(office.begins().lately() == "lets go; leaves");
  office.job(1).begins().starts(task(1));
  // What runs needs no runner.
  CHECK(office.wakes().lately() == "starts 1; lets go; leaves");
}

TEST_CASE("a job that was left to a runner which was about to leave is started") {
  Office office;
  office.on_let_go = [&] { office.job(1); };
  CHECK(office.begins().lately() == "lets go; starts 1");
  // The same where another has become the runner meanwhile, which starts it.
  Office other;
  other.on_let_go = [&] {
    other.job(1);
    other.is_runner_there = true;
  };
  CHECK(other.begins().lately() == "lets go; leaves to another");
}

TEST_CASE("one that is over and is retried as the runner is about to leave is started") {
  Office office;
  office.job(1).begins().starts(task(1)).ends(task(1), 3).begins();
  office.lately();
  const auto retry = [&] {
    office.files[task(1)].push_back(wrote(TaskEventKind::again));
    // Its user sees the lock of the runner, or has seen it.
    office.rung_unread = true;
  };
  office.on_let_go = retry;
  CHECK(office.begins().lately() == "lets go; starts 1");
  // The same where another has become the runner meanwhile: it reads all jobs.
  office.starts(task(1)).ends(task(1), 3);
  office.on_let_go = [&] {
    retry();
    office.is_runner_there = true;
  };
  office.wakes();
  CHECK(office.lately() == "lets go; leaves to another");
}

TEST_CASE("a runner that goes on reads what was over, since another may have heard of it and been killed") {
  Office office;
  office.job(1).begins().starts(task(1)).ends(task(1), 3).begins();
  office.lately();
  office.on_let_go = [&] {
    office.files[task(1)].push_back(wrote(TaskEventKind::again));
    office.job(2, [](Job& job) { job.rivals = "other"; });
  };
  CHECK(office.begins().lately() == "lets go; starts 1; starts 2");
}

TEST_CASE("what was over is not read again as the runner leaves, where nobody has rung") {
  Office office;
  int reads = 0;
  office.job(1).begins().starts(task(1)).ends(task(1)).wakes();
  office.on_read = [&](std::uint64_t) { ++reads; };
  CHECK(office.begins().left);
  CHECK(reads == 1);
}

TEST_CASE("a job that cannot be read now is read again later, and keeps the runner until then") {
  Office office;
  office.job(1).unreadable = {1};
  CHECK(office.begins().lately().empty());
  CHECK(office.asleep);
  CHECK(office.sleeps_ms == 200);
  CHECK(office.passes(200ms).wakes().sleeps_ms == 400);
  office.unreadable.clear();
  CHECK(office.passes(400ms).wakes().lately() == "starts 1");
  // The pauses begin anew.
  office.unreadable = {1};
  CHECK(office.told(Overheard{}).wakes().sleeps_ms == 200);
  office.starts(task(1));
  // It was in the queue when it was read last, and is not started once more.
  CHECK(office.passes(200ms).wakes().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(60s).wakes().lately() == "lets go; leaves");
}

TEST_CASE("a job that was removed while it could not be read keeps no runner") {
  Office office;
  office.job(1).unreadable = {1};
  CHECK(office.begins().asleep);
  office.jobs.clear();
  office.unreadable.clear();
  CHECK(office.passes(200ms).wakes().lately() == "lets go; leaves");
}

TEST_CASE("what comes after a job that cannot be read now waits, and is not given up") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after = {1}; }).job(3, [](Job& job) { job.after_ok = {1}; });
  office.unreadable = {1};
  CHECK(office.begins().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
  office.starts(task(1)).wakes();
  office.ends(task(1));
  // It is asked how it ended, and cannot tell.
  office.on_read = [&](std::uint64_t number) {
    if (number == 1) office.unreadable = {1};
  };
  office.wakes();
  CHECK(office.lately() == "tells the end of 1; starts 2");
  CHECK(office.starts(task(2)).wakes().lately().empty());
  CHECK(office.asleep);
  office.on_read = {};
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "starts 3");
}

TEST_CASE("while a job cannot be read no singleton starts, since it may have its name") {
  Office office;
  const auto named = [](Job& job) {
    job.name = "sync";
    job.singleton = true;
  };
  office.job(1, named).job(2, named).unreadable = {1};
  CHECK(office.begins().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
}

TEST_CASE("what an earlier runner has started is watched, and not started again") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  CHECK(office.begins().lately() == "watches 1");
  CHECK(office.starts(task(1)).ends(task(1)).wakes().lately() == "tells the end of 1; starts 2");
}

TEST_CASE("one that was killed in the queue gets into it again after a pause, which doubles") {
  Office office;
  office.job(1, [](Job& job) { job.rerun = true; }).begins();
  CHECK(office.dies(task(1)).wakes().lately() == "starts 1");
  CHECK(office.sleeps_ms == 200);
  CHECK(office.passes(199ms).wakes().lately().empty());
  CHECK(office.passes(1ms).wakes().lately() == "starts 1");
  CHECK(office.dies(task(1)).wakes().sleeps_ms == 400);
  CHECK(office.passes(400ms).wakes().lately() == "starts 1");
  for (int i = 0; i < 20; ++i) office.dies(task(1)).wakes().passes(60s).wakes();
  CHECK(office.dies(task(1)).wakes().sleeps_ms == 60'000);
  // Once one has started, the pauses begin anew.
  office.passes(60s).wakes().starts(task(1)).wakes().job(2).rings(task(2)).wakes();
  CHECK(office.dies(task(2)).wakes().sleeps_ms == 200);
}

TEST_CASE("one that cannot begin holds up no other, but if three cannot, all that ask for the same wait") {
  Office office;
  for (const std::uint64_t number : {1U, 2U, 3U, 4U}) office.job(number);
  CHECK(office.begins().dies(task(1)).wakes().lately() == "starts 1; starts 2");
  CHECK(office.dies(task(2)).wakes().lately() == "starts 3");
  CHECK(office.dies(task(3)).wakes().lately().empty());
  CHECK(office.passes(200ms).wakes().lately() == "starts 1");
}

TEST_CASE("one whose process was started and has not taken it yet is not started again") {
  Office office;
  office.takes_at_once = false;
  CHECK(office.job(1).begins().rings(task(1)).wakes().lately() == "starts 1");
  CHECK(office.told(Overheard{}).wakes().lately().empty());
}

TEST_CASE("why no process could be started is written once") {
  Office office;
  office.spawns = false;
  CHECK(office.job(1).begins().lately() == "puts off 1: no memory");
  CHECK(office.passes(1s).wakes().lately().empty());
  office.spawns = true;
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
}

TEST_CASE("a child whose task was cancelled before it could say who it is gets SIGTERM") {
  Office office;
  office.job(1).begins();
  CHECK(office.cancelled(task(1)).wakes().lately() ==
        "starts 1; SIGTERM to 1; tells the end of 1; lets go; leaves");
}

TEST_CASE("what a killed run has left behind is looked at again and again, and killed where it is to end") {
  Office office;
  office.job(1, [](Job& job) { job.rerun = true; }).begins().starts(task(1)).wakes();
  CHECK(office.dies(task(1), Alive::rest).wakes().sleeps_ms == 5000);
  CHECK(office.cancelled(task(1)).wakes().lately() == "starts 1");
  office.overdue = true;
  CHECK(office.passes(5s).wakes().lately() == "kills what is left of 1");
  CHECK(office.passes(5s).wakes().lately() == "tells the end of 1; lets go; leaves");
}

TEST_CASE("a job waits for those that it comes after, and is cancelled if one did not end as it asks") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after = {1}; });
  office.job(3, [](Job& job) { job.after_ok = {1}; });
  CHECK(office.begins().starts(task(1)).wakes().lately() == "starts 1");
  CHECK(office.ends(task(1), 3).wakes().lately() ==
        "tells the end of 1; gives up 3 for 1; tells the end of 3; starts 2");

  Office well;
  well.job(1).job(2, [](Job& job) { job.after_ok = {1}; });
  well.begins().starts(task(1)).ends(task(1)).wakes();
  CHECK(well.lately() == "starts 1; tells the end of 1; starts 2");
}

TEST_CASE("one that is to be given up never starts, though the disk does not take that") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after_ok = {1}; });
  office.writes = false;
  office.begins().starts(task(1)).ends(task(1), 3).wakes();
  CHECK(office.lately() == "starts 1; tells the end of 1; gives up 2 for 1");
  CHECK(office.sleeps_ms == 60'000);
  CHECK(office.passes(60s).wakes().lately() == "gives up 2 for 1");
  office.writes = true;
  CHECK(office.passes(60s).wakes().lately() == "gives up 2 for 1; tells the end of 2; lets go; leaves");
}

TEST_CASE("a job does not start before its time, by the clock of the wall, which may be set") {
  Office office;
  office.job(1, [&](Job& job) { job.not_before_s = office.wall_s + 90; });
  CHECK(office.begins().lately().empty());
  CHECK(office.sleeps_ms == 60'000);
  CHECK(office.passes(60s).wakes().lately().empty());
  CHECK(office.sleeps_ms == 30'000);
  office.wall_s += 3600;
  CHECK(office.wakes().lately() == "starts 1");
}

TEST_CASE("when a tenant has gone, what waits is cancelled at once, and what runs after its grace") {
  Office office;
  office.tenants = {7};
  const auto of_tenant = [](Job& job) {
    job.tenant = 7;
    job.tenant_gpus = 8;
    job.tenant_grace_s = 10;
  };
  office.job(1, of_tenant).job(2, of_tenant).job(3, of_tenant).begins().starts(task(1)).wakes();
  CHECK(office.lately() == "starts 1; starts 2");
  CHECK(office.sleeps_ms == 1000);
  office.tenants.clear();
  CHECK(office.passes(1s).wakes().lately() == "cancels 2; cancels 3; tells the end of 2; tells the end of 3");
  CHECK(office.passes(9s).wakes().lately().empty());
  CHECK(office.passes(1s).wakes().lately() == "cancels 1; tells the end of 1; lets go; leaves");
}

TEST_CASE("when a tenant has gone, a task whose start is not heard of yet has its grace as well") {
  Office office;
  office.tenants = {7};
  office.job(1, [](Job& job) {
    job.tenant = 7;
    job.tenant_gpus = 8;
    job.tenant_grace_s = 10;
  });
  office.begins().files[task(1)].push_back(wrote(TaskEventKind::started));
  office.tenants.clear();
  CHECK(office.wakes().lately() == "starts 1");
  CHECK(office.passes(10s).wakes().lately().starts_with("cancels 1"));
}

TEST_CASE(
    "of an array whose tenant has gone, what is in the queue is cancelled, and what runs has its grace") {
  Office office;
  office.job(1, [](Job& job) {
    job.array = "0-2";
    job.tenant = 7;
    job.tenant_gpus = 8;
    job.tenant_grace_s = 10;
  });
  office.tenants = {7};
  office.begins().starts({1, 0}).wakes();
  CHECK(office.lately() == "starts 1.0; starts 1.1");
  office.tenants.clear();
  CHECK(office.wakes().lately() == "cancels 1.1");
  CHECK(office.passes(10s).wakes().lately().starts_with("cancels 1"));
  CHECK(office.left);
}

TEST_CASE("a job that somebody wants to be told of, or that is run again, keeps a runner while it runs") {
  for (const auto& is_so : std::vector<std::function<void(Job&)>>{
           [](Job& job) { job.notify.targets = {"mail:bob"}; }, [](Job& job) { job.rerun = true; }}) {
    Office office;
    office.job(1, is_so).begins().starts(task(1)).wakes();
    CHECK(office.asleep);
    CHECK(office.ends(task(1)).wakes().lately().ends_with("leaves"));
  }
}

TEST_CASE("news that was lost is made good by reading all") {
  Office office;
  office.job(1).begins();
  CHECK(office.job(2, [](Job& job) { job.rivals = "other"; }).wakes().lately() == "starts 1");
  CHECK(office.told(Overheard{}).wakes().lately() == "starts 2");
}

TEST_CASE(
    "a job that is gone, or that cannot be read, is left alone, and its user may retry one that is over") {
  Office office;
  office.job(1).begins().starts(task(1)).job(2).rings(task(2)).wakes();
  CHECK(office.lately() == "starts 1; starts 2");
  office.jobs.erase(1);
  CHECK(office.rings(task(9)).rings(task(1)).wakes().asleep);
  office.ends(task(2), 3).wakes();
  CHECK(office.lately().ends_with("leaves"));
  office.begins();
  office.files[task(2)].push_back(wrote(TaskEventKind::again));
  CHECK(office.begins().lately().ends_with("starts 2"));
}

namespace {

/// Jobs of all kinds, whose tasks and whose runner meet anything.
class BusyDays {
 public:
  void go() {
    const int jobs = 1 + below(6);
    for (int i = 1; i <= jobs; ++i) add(static_cast<std::uint64_t>(i));
    office_.tenants = {1};
    office_.on_spawn = [this](TaskId id) { check_spawn(id); };
    office_.begins();
    const int steps = below(60);
    for (int i = 0; i < steps; ++i) anything();
    // From now on nothing goes wrong, and all that starts ends.
    office_.spawns = office_.takes_at_once = office_.writes = office_.overdue = true;
    office_.tenants.clear();
    for (int i = 0; i < 200 && !is_all_over(); ++i) {
      for (auto& [id, alive] : office_.alive) {
        if (alive == Alive::run && office_.standing(id).phase == TaskPhase::waiting) office_.starts(id);
        if (alive == Alive::run)
          office_.ends(id);
        else if (alive != Alive::nothing)
          office_.dies(id);
      }
      office_.passes(60s);
      // Each job that starts or ends makes sure that there is one.
      if (office_.left)
        office_.begins();
      else
        office_.wakes();
    }
    RC_ASSERT(is_all_over());
    RC_ASSERT(office_.wakes().left);
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static bool one_in(int count) { return below(count) == 0; }

  void add(std::uint64_t number) {
    office_.job(number, [&](Job& job) {
      job.rivals = one_in(2) ? "some" : "others";
      if (one_in(3)) job.array = "0-3";
      if (one_in(4)) job.at_once = 1;
      if (number > 1 && one_in(3))
        job.after = {1 + static_cast<std::uint64_t>(below(static_cast<int>(number) - 1))};
      if (number > 1 && one_in(3))
        job.after_ok = {1 + static_cast<std::uint64_t>(below(static_cast<int>(number) - 1))};
      if (one_in(4)) job.not_before_s = office_.wall_s + below(200);
      job.rerun = one_in(3);
      if (!one_in(3)) return;
      job.tenant = static_cast<std::uint64_t>(1 + below(2));
      job.tenant_gpus = 2;
      job.tenant_grace_s = below(20);
    });
  }

  void anything() {
    auto place = office_.files.begin();
    std::advance(place, below(static_cast<int>(office_.files.size())));
    const TaskId id = place->first;
    const Alive alive = office_.alive[id];
    const TaskPhase phase = office_.standing(id).phase;
    switch (below(10)) {
      case 0:
        if (alive == Alive::run && phase == TaskPhase::waiting) office_.starts(id);
        break;
      case 1:
        if (alive == Alive::run && phase == TaskPhase::running) office_.ends(id, below(2));
        break;
      case 2:
        if (alive == Alive::run)
          office_.dies(id, phase == TaskPhase::running && one_in(2) ? Alive::rest : Alive::nothing);
        break;
      case 3:
        if (alive == Alive::rest || (alive == Alive::young && one_in(3)))
          office_.dies(id);
        else if (alive == Alive::young && phase == TaskPhase::waiting)
          office_.takes(id);
        break;
      case 4:
        if (one_in(3)) office_.cancelled(id);
        break;
      case 5:
        if (one_in(3)) office_.begins();
        return;
      case 6:
        office_.spawns = one_in(2);
        break;
      case 7:
        office_.writes = one_in(2);
        office_.takes_at_once = one_in(2);
        break;
      case 8:
        if (one_in(4)) office_.tenants.clear();
        office_.overdue = one_in(2);
        break;
      default:
        office_.passes(Moment(below(20'000)));
        break;
    }
    if (!one_in(3)) return;
    if (office_.left)
      office_.begins();
    else
      office_.wakes();
  }

  void check_spawn(TaskId id) {
    // Nobody has it, nothing of it lives, and it waits.
    RC_ASSERT(office_.alive[id] == Alive::nothing);
    RC_ASSERT(office_.standing(id).phase == TaskPhase::waiting);
    const Job& job = office_.jobs.at(id.job);
    RC_ASSERT(office_.wall_s >= job.not_before_s.value_or(0));
    RC_ASSERT(job.tenant == 0 || office_.state.gone.count(job.tenant) == 0);
    for (const std::uint64_t other : job.after) RC_ASSERT(is_over_now(other));
    for (const std::uint64_t other : job.after_ok) {
      const auto of_other = office_.standings(other);
      RC_ASSERT(counts_of(of_other).done == of_other.size());
    }
    int busy = 0;
    int of_tenant = 1;
    for (const auto& [each, events] : office_.files) {
      const TaskStanding standing = office_.standing(each);
      if (each != id && standing.in_queue) RC_ASSERT(office_.jobs.at(each.job).rivals != job.rivals);
      const bool is_busy = standing.in_queue || standing.phase == TaskPhase::running;
      busy += each.job == id.job && is_busy ? 1 : 0;
      of_tenant += job.tenant != 0 && office_.jobs.at(each.job).tenant == job.tenant && is_busy ? 1 : 0;
    }
    RC_ASSERT(job.at_once == 0 || busy < static_cast<int>(job.at_once));
    RC_ASSERT(job.tenant == 0 || of_tenant <= static_cast<int>(job.tenant_gpus));
  }

  bool is_over_now(std::uint64_t number) const {
    return std::ranges::all_of(office_.standings(number),
                               [](const TaskStanding& each) { return is_over(each); });
  }
  bool is_all_over() const {
    return std::ranges::all_of(office_.jobs, [this](const auto& each) { return is_over_now(each.first); });
  }

  Office office_{};
};

}  // namespace

TEST_CASE("whatever happens to tasks, tenants and runners, no job starts out of its turn and none is left") {
  CHECK(rc::check("any days", [] { BusyDays().go(); }));
}

TEST_CASE("a held job is not started, and holds up no other") {
  Office office;
  office.job(1).job(2).held(task(1));
  CHECK(office.begins().lately() == "starts 2");
  office.starts(task(2)).wakes();
  // For a job that is held nobody has to stay.
  CHECK(office.lately() == "lets go; leaves");
  CHECK(office.let_go(task(1)).begins().lately() == "watches 2; starts 1");
}

TEST_CASE("a job that is held while it is in the queue leaves it, and the next one joins") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  CHECK(office.held(task(1)).wakes().lately() == "SIGTERM to 1; starts 2");
  CHECK(office.let_go(task(1)).wakes().lately().empty());
  CHECK(office.starts(task(2)).wakes().lately() == "starts 1");
}

TEST_CASE("jobs with the same request start in the order of their positions") {
  Office office;
  office.job(1).job(2).job(3).begins();
  CHECK(office.lately() == "starts 1");
  office.moved(task(3), position_between(position_of(1, ""), position_of(2, ""))).wakes();
  CHECK(office.starts(task(1)).wakes().lately() == "starts 3");
  CHECK(office.starts(task(3)).wakes().lately() == "starts 2");
}

TEST_CASE("a process that goes on with another task is no longer that of the first") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  office.held(task(1), task(2)).wakes();
  CHECK(office.lately().empty());
  CHECK(office.hands_on(task(1), task(2)).wakes().lately() == "watches 2; lets be 1; lets go; leaves");
  office.let_go(task(1)).begins();
  CHECK(office.lately() == "watches 2; starts 1");
  office.ends(task(2)).starts(task(1)).wakes();
  CHECK(office.standing(task(1)).phase == TaskPhase::running);
}

TEST_CASE("a job that is to run after a failure is cancelled where there was none") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after_fail = {1}; }).job(3, [](Job& job) { job.after_fail = {1}; });
  office.begins();
  CHECK(office.lately() == "starts 1");
  office.starts(task(1)).wakes();
  CHECK(
      office.ends(task(1)).wakes().lately() ==
      "tells the end of 1; gives up 2 for 1, which ended well; gives up 3 for 1, which ended well; tells the "
      "end of 2; tells the end of 3; lets go; leaves");
  Office other;
  other.job(1).job(2, [](Job& job) { job.after_fail = {1}; }).begins();
  other.starts(task(1)).wakes();
  CHECK(other.ends(task(1), 3).wakes().lately() == "starts 1; tells the end of 1; starts 2");
}

TEST_CASE("of the singletons of a name one is at work at a time, in the order of their numbers") {
  Office office;
  const auto named = [](Job& job) {
    job.name = "sync";
    job.singleton = true;
    job.rivals = std::to_string(job.words.size());
  };
  office.job(1, named).job(2, named).job(3, [](Job& job) { job.rivals = "x"; });
  office.jobs[2].rivals = "other";
  CHECK(office.begins().lately() == "starts 1; starts 3");
  CHECK(office.starts(task(1)).wakes().lately().empty());
  CHECK(office.ends(task(1)).wakes().lately() == "tells the end of 1; starts 2");
}

}  // namespace berth::runner_test
