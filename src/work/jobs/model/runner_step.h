#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/base/record.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/model/job_tasks.h"

// The runner of a user's jobs, as a pure step: what was read or has happened goes in, and what to
// do next comes out. The loop (src/work/jobs/runner.cpp) does that and passes the results
// back in.
//
// The runner knows only what it has read in the spool, and which processes have the tasks. Whatever
// it has forgotten with a kill, the next one reads again.
namespace berth::jobs::runner {

// Which process has a task that is in the queue or runs.

/// The process is a child of this runner.
struct Child {};
/// An earlier runner has started the process. This runner is told when the process ends.
struct Adopted {};
/// This runner looks for the process: the answer to Watch has not come yet.
struct Sought {
  Backoff pause{};  ///< of the stray that it was; empty: it was none
};
/// The process has ended or has not said who it is, and something has the lock of the task: what
/// the process had started, or a process that Berth needs for a moment. Nobody tells when that
/// ends.
struct Stray {
  Backoff pause{};         ///< until the next look
  bool is_to_end = false;  ///< somebody wants the task to end
};
using Process = std::variant<Child, Adopted, Sought, Stray>;

// How far the conditions of a job have come. A job without an entry has none left.

/// It waits for other jobs to be over, or for its start time.
struct ConditionsPending {
  bool operator==(const ConditionsPending&) const = default;
};
/// One of the jobs that a job comes after did not end as it asks.
struct Reproach {
  std::uint64_t job = 0;
  bool ended_well = false;

  bool operator==(const Reproach&) const = default;
};

/// The other jobs are over. How they ended is not known yet: the answer to AskWell has not come.
struct EndingsAsked {
  bool operator==(const EndingsAsked&) const = default;
};
/// A job ended otherwise than this one needs, so this one is cancelled.
struct ConditionFailed {
  Reproach reproach;

  bool operator==(const ConditionFailed&) const = default;
};
struct Conditions {
  std::vector<std::uint64_t> after;         ///< as Job::after
  std::vector<std::uint64_t> after_ok;      ///< as Job::after_ok
  std::vector<std::uint64_t> after_fail{};  ///< as Job::after_fail
  std::int64_t not_before_s = 0;            ///< as Job::not_before_s; 0: at once
  std::variant<ConditionsPending, EndingsAsked, ConditionFailed> stage{};
};

/// Of jobs that ask for the same: those that could not join the queue since one of them last did.
struct Failures {
  std::set<std::uint64_t> jobs;
  Backoff pause{};
};

// What the runner does at present.

/// It reads all jobs, as it has just become the runner.
struct Begins {};
struct Works {};
/// It has let another become the runner, and looks once more whether a job was left to it.
struct Rests {};

struct State {
  std::variant<Begins, Works, Rests> stage{};
  std::vector<KnownJob> jobs{};  ///< those that are not over, by number
  std::set<std::uint64_t> over{};
  std::map<TaskId, Process> processes{};
  /// Of those that are not over, those of which somebody wants to be told, or that are run again by
  /// themselves.
  std::set<std::uint64_t> attended{};
  std::map<std::uint64_t, Conditions> conditions{};
  std::map<std::uint64_t, Backoff> pauses{};     ///< of jobs that could not join the queue
  std::map<std::string, Failures> failures{};    ///< by what they ask for
  std::map<std::uint64_t, Backoff> unread{};     ///< jobs that could not be read, until when they are left so
  std::optional<Backoff> unlisted{};             ///< the same of the list of all jobs
  std::map<std::uint64_t, SteadyTime> graces{};  ///< of the jobs of tenants: Job::tenant_grace_s
  std::map<std::uint64_t, SteadyTime> gone{};    ///< tenants, and when they were seen to have gone
  std::set<std::uint64_t> ended{};               ///< jobs that were asked to end with their tenant
  SteadyTime next_forget{};
};

// What has happened.

/// This process is the runner now.
struct RunnerBegun {};
/// The answer to List: the numbers of all jobs.
struct JobsListed {
  std::vector<std::uint64_t> numbers;
};
/// The answer to List, if the spool cannot be read now.
struct JobsNotListed {};
/// The answer to ReadJob.
struct JobRead {
  std::uint64_t number = 0;
  std::optional<Job> job{};               ///< nullopt: it is not there, or its file is no job
  std::vector<TaskStanding> standings{};  ///< of its tasks, in order
  unsigned gpus = 1;                      ///< how many each of its tasks gets
  std::string position{};                 ///< as TaskEvent::position
};
/// The answer to ReadJob, if an earlier runner found the job over, with nothing of it left, and
/// nothing has been written of it since.
struct StillOver {
  std::uint64_t number = 0;
};
/// The answer to ReadJob or AskWell, if this job cannot be read now: too many open files, no
/// memory.
struct NotRead {
  std::uint64_t number = 0;
};
/// The answer to ReadTask.
struct TaskRead {
  TaskId id;
  std::optional<TaskStanding> standing{};  ///< nullopt: it cannot be read
};
/// The answers to Watch.
struct Watched {
  TaskId id;
};
struct NotWatched {
  TaskId id;
  bool asked_to_end = false;
  bool overdue = false;  ///< the time that it had for that is over
};
/// The process of a task has ended, and the task stands like this.
struct ProcessEnded {
  TaskId id;
  std::optional<TaskStanding> standing{};
};
/// The answer to Spawn, if it failed.
struct NotSpawned {
  TaskId id;
  std::string reason;
  std::string told;  ///< the reason that is written for it already
};
/// The answer to AskTenants: those that have ended.
struct TenantsSeen {
  std::set<std::uint64_t> gone;
};
/// The answer to AskWell.
struct WellKnown {
  std::uint64_t number = 0;
  std::optional<Reproach> reproach{};  ///< one that did not end as it should
};
/// The answer to LetGo. `rung`: there is news that nobody has read.
struct HasLetGo {
  bool rung = false;
};
/// There is news of these tasks; of a task without an index: of all tasks of the job.
struct Rung {
  std::set<TaskId> tasks;
};
/// There is so much news that some of it was lost.
struct Overheard {};
/// The sleep is over, and all that ended it was told.
struct Woken {};
/// All answers are in.
struct Settled {};
using Event = std::variant<RunnerBegun, JobsListed, JobsNotListed, JobRead, StillOver, NotRead, TaskRead,
                           Watched, NotWatched, ProcessEnded, NotSpawned, TenantsSeen, WellKnown, HasLetGo,
                           Rung, Overheard, Woken, Settled>;
struct TimedEvent {
  SteadyTime now;
  std::int64_t wall_s = 0;
  Event what;
};

// What to do.

/// Read the numbers of all jobs.
struct List {
  bool operator==(const List&) const = default;
};
struct ReadJob {
  std::uint64_t number = 0;

  bool operator==(const ReadJob&) const = default;
};
struct ReadTask {
  TaskId id;

  bool operator==(const ReadTask&) const = default;
};
/// Send the notice of the job's end, if that is wanted and nobody has sent it.
struct TellEnd {
  std::uint64_t number = 0;

  bool operator==(const TellEnd&) const = default;
};
/// Find the process that has this task, to be told of its end.
struct Watch {
  TaskId id;
  TaskStanding standing;

  bool operator==(const Watch&) const = default;
};
/// Tell this child that its task is cancelled or held.
struct EndChild {
  TaskId id;

  bool operator==(const EndChild&) const = default;
};
/// This child has gone on with another task: its end tells nothing of this one.
struct LetBe {
  TaskId id;

  bool operator==(const LetBe&) const = default;
};
/// Send SIGKILL to what is left of the task.
struct KillLeft {
  TaskId id;

  bool operator==(const KillLeft&) const = default;
};
struct AskTenants {
  std::set<std::uint64_t> tenants;

  bool operator==(const AskTenants&) const = default;
};
/// Find out whether the jobs that the job `number` comes after ended as it asks.
struct AskWell {
  std::uint64_t number = 0;
  std::vector<std::uint64_t> jobs;      ///< all of these well
  std::vector<std::uint64_t> failed{};  ///< none of these

  bool operator==(const AskWell&) const = default;
};
/// Write that the job is cancelled, and why, and read it.
struct GiveUp {
  std::uint64_t number = 0;
  Reproach reproach;

  bool operator==(const GiveUp&) const = default;
};
/// Cancel the job since its tenant has gone, or one task of it, and read it.
struct Cancel {
  std::uint64_t number = 0;
  std::optional<unsigned> index{};

  bool operator==(const Cancel&) const = default;
};
/// Start a process that takes the task and joins the queue.
struct Spawn {
  TaskId id;

  bool operator==(const Spawn&) const = default;
};
/// Write why the task could not join the queue.
struct NotePutOff {
  TaskId id;
  std::string reason;

  bool operator==(const NotePutOff&) const = default;
};
/// Remove jobs that have been over for long.
struct ForgetOld {
  bool operator==(const ForgetOld&) const = default;
};
/// Sleep until something happens. nullopt: nothing is due at any time. What happened is told, and
/// then Woken.
struct Sleep {
  std::optional<SteadyTime> until{};

  bool operator==(const Sleep&) const = default;
};
/// Let another become the runner.
struct LetGo {
  bool operator==(const LetGo&) const = default;
};
/// Become the runner again. The answer is RunnerBegun; if there is one already, this process ends.
struct BeginAgain {
  bool operator==(const BeginAgain&) const = default;
};
/// End this process.
struct Leave {
  bool operator==(const Leave&) const = default;
};
using Action =
    std::variant<List, ReadJob, ReadTask, TellEnd, Watch, EndChild, LetBe, KillLeft, AskTenants, AskWell,
                 GiveUp, Cancel, Spawn, NotePutOff, ForgetOld, Sleep, LetGo, BeginAgain, Leave>;

struct Step {
  State state;
  std::vector<Action> actions;
};
Step next(State state, const TimedEvent& event);

}  // namespace berth::jobs::runner
