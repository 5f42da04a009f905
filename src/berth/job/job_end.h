#pragma once

#include <chrono>
#include <optional>
#include <variant>

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

/// What can happen to a job. `TimePasses`: nothing but that.
struct CommandGone {};
struct TimePasses {};
using EndEvent = std::variant<ReleaseWish, CancelWish, TimeWish, CommandGone, TimePasses>;

/// How far the end of a job has come. Moments are those of one clock, which nobody can set.
struct CommandRuns {};     ///< nobody wants it to end
struct RestLeftBehind {};  ///< the command has ended, and nobody wants its rest to end
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
using JobEnd = std::variant<CommandRuns, RestLeftBehind, CommandAsked, AllAsked>;

/// What is to be done now. No process gets SIGTERM twice, unless somebody asks for the release once
/// more.
enum class EndAction {
  nothing,
  ask_command,  ///< SIGTERM to the command, also if it has got it
  ask_rest,     ///< SIGTERM to each process of the job that has not got it
  ask_again,    ///< SIGTERM to each process of the job
  kill,         ///< SIGKILL to each process of the job
};

struct EndStep {
  JobEnd next;
  EndAction action = EndAction::nothing;
};

/// How long the command has to end what it has started.
inline constexpr std::chrono::milliseconds kTimeForOwnRest = std::chrono::seconds(5);

/// One step on the way to the end of a job.
EndStep next_step(const JobEnd& now_is, const EndEvent& event, std::chrono::milliseconds now);

/// When time alone makes a step. nullopt: never.
std::optional<std::chrono::milliseconds> next_due(const JobEnd& end);

}  // namespace berth
