#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "berth/base/error.h"
#include "berth/job/task_standing.h"
#include "berth/verdict/ledger.h"

namespace berth {

/// How a job is to end, which depends on who wants it to end. `grace`: the time between the last
/// SIGTERM and SIGKILL.

/// `berth release`, or SIGTERM to `berth run`. The job is asked, so there is no SIGKILL.
struct ReleaseWish {};
/// `berth cancel` and all that works like it.
struct CancelWish {
  std::chrono::milliseconds grace;
};
/// The time of the lease is over, or the lease yields.
struct TimeWish {
  std::chrono::milliseconds grace;
};

/// What can happen on the way. `TimePasses`: nothing but that.
struct TimePasses {};
using EndEvent = std::variant<ReleaseWish, CancelWish, TimeWish, TimePasses>;

// How far the end of a job has come. Moments are those of one clock, which nobody can set.

/// Nobody wants it to end.
struct NotAsked {
  bool operator==(const NotAsked&) const = default;
};
/// The command got SIGTERM, and has until `rest_at` to end what it has started.
struct CommandAsked {
  std::chrono::milliseconds rest_at;
  std::optional<std::chrono::milliseconds> grace;  ///< nullopt: without SIGKILL

  bool operator==(const CommandAsked&) const = default;
};
/// All of the job got SIGTERM.
struct AllAsked {
  std::optional<std::chrono::milliseconds> kill_at;  ///< nullopt: without SIGKILL

  bool operator==(const AllAsked&) const = default;
};
/// While the command runs.
using EndOfCommand = std::variant<NotAsked, CommandAsked, AllAsked>;
/// Once it has ended: of what it has left behind.
using EndOfRest = std::variant<NotAsked, AllAsked>;

/// What is to be done now. No process gets SIGTERM twice, unless somebody asks for the release once
/// more.
enum class EndAction {
  nothing,
  ask_command,  ///< SIGTERM to the command, also if it has got it
  ask_rest,     ///< SIGTERM to each process of the job that has not got it
  ask_again,    ///< SIGTERM to each process of the job
  kill,         ///< SIGKILL to each process of the job
};

template <class End>
struct EndStep {
  End next;
  EndAction action = EndAction::nothing;
};

/// How long the command has to end what it has started.
inline constexpr std::chrono::milliseconds kTimeForOwnRest = std::chrono::seconds(5);

/// One step on the way to the end of a job.
EndStep<EndOfCommand> next_step(const EndOfCommand& now_is, const EndEvent& event,
                                std::chrono::milliseconds now);
EndStep<EndOfRest> next_step(const EndOfRest& now_is, const EndEvent& event, std::chrono::milliseconds now);
/// The same when the command has ended.
EndStep<EndOfRest> after_command(const EndOfCommand& now_is, std::chrono::milliseconds now);

/// When time alone makes a step. nullopt: never.
std::optional<std::chrono::milliseconds> next_due(const EndOfCommand& end);
std::optional<std::chrono::milliseconds> next_due(const EndOfRest& end);

// How a run of a command ended, and what follows from that: whether it is started again, and how it
// is noted. All that tells of an end, or acts on it, asks here.

/// Who has ended a run.
enum class EndedBy {
  itself,    ///< or a signal that Berth knows nothing of
  somebody,  ///< `berth release`, `berth cancel`, SIGTERM to `berth run`
  time,      ///< the time of its lease is over
  waiter,    ///< it has given way, for no other reason
};

struct RunEnd {
  ProcessEnd process{};  ///< if its command could not be started: as shells tell that
  std::chrono::milliseconds lasted{};
  EndedBy by = EndedBy::itself;
  std::string waiter{};  ///< the sentence that says for whom; "": by nobody who waits

  bool operator==(const RunEnd&) const = default;
};

/// As it is noted for its devices and for its user. Badly: by itself, with a status that says
/// failure, or by a signal of its own making. A signal from outside, and a program that cannot be
/// found, say nothing of the devices.
Ending noted_as(const RunEnd& end);

/// The wish of a user to have a command started again.
struct AgainWish {
  bool requeue = false;  ///< --requeue: once it has given way
  unsigned retries = 0;  ///< --retries: so often, once it has failed by itself
  /// --retry-on: only if it failed with one of these, also after its time; none: any, but not after
  /// its time.
  std::span<const int> statuses{};
};
/// Whether, and why, it is started again.
enum class Again { no, has_given_way, has_failed };
/// `task`: the task that ran, before its end is written. Without it nothing is run again because it
/// has failed: the command is no task, or it is not known whether its user has cancelled it.
Again again(const RunEnd& end, const AgainWish& wish, const std::optional<TaskStanding>& task = {});

}  // namespace berth
