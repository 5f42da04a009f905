#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/device/device.h"
#include "berth/job/run_end.h"

namespace berth {

/// The steps to the end of a lease that has a time limit, by a clock that counts from the grant and
/// that nobody can set.
enum class TimeDue {
  none,  ///< nothing is due
  warn,  ///< its user is warned that it will end
  over,  ///< its time is over
};

/// How far the time of a lease has come.
struct JobTime {
  std::chrono::milliseconds time{};  ///< of the lease, from its grant on
  bool warned = false;

  bool operator==(const JobTime&) const = default;
};

/// How long before the end the user is warned: a tenth of the time, at most five minutes.
std::chrono::milliseconds warning_before(std::chrono::milliseconds time);

/// What is due `since` the grant.
TimeDue due(const JobTime& job, std::chrono::milliseconds since);

/// What is due now, each step once. `time`: of the lease, as its ticket says now; nullopt: it
/// cannot be read. If somebody has changed it, nothing is due, and another warning will come.
TimeDue take_due(JobTime& job, std::chrono::milliseconds since,
                 const std::optional<std::chrono::milliseconds>& time);

/// When something is due next, since the grant.
std::chrono::milliseconds next_due(const JobTime& job);

/// What tells whether something computes.
inline constexpr ReadingSet kReadingsOfLoad = ReadingKind::utilization | ReadingKind::processes;
/// Whether something computes on one of these devices, by their load. Absent: not known.
Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids);
/// Whether one of these processes does. Absent: not known.
Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids,
                           const std::set<std::uint32_t>& pids);

/// How long nothing has computed, judged by repeated looks, and whether others know that. Times are
/// from any steady clock.
class IdleSpan {
 public:
  using Time = std::chrono::milliseconds;

  /// Idle means that nothing has computed in any look for `after`.
  IdleSpan(std::chrono::seconds after, Time now) : after_(after), computed_(now) {}

  /// `computes`: absent counts as true, since nobody may lose a lease that may be used.
  void note(Time now, Reading<bool> computes);
  bool is_idle() const { return idle_; }
  /// Whether its holder may end it for a waiter: others may have to be told first, and are not yet.
  bool gives_way() const { return idle_ && told_; }
  std::chrono::seconds after() const { return after_; }
  /// Whether others have to be told that it is idle now, or that it no longer is.
  bool has_news() const { return idle_ != told_; }
  void has_told() { told_ = idle_; }
  /// Between two looks.
  std::chrono::seconds period() const;

 private:
  std::chrono::seconds after_;
  Time computed_;
  bool idle_ = false;
  bool told_ = false;  ///< what others know: that it is idle
};

}  // namespace berth

// A command in its lease, from its start to the end of the lease, as a pure step: what has happened
// goes in, and what to do next comes out. The loop (src/run/supervise/leased_command.cpp) does
// that and passes the result back in.
//
// The lease lasts as long as anything lives that the command has started, unless its user or the
// site says otherwise. Berth ends the command early for one of three reasons: somebody asks for
// that, its time is over, or it gives way to a waiter.
namespace berth::supervise::leased_run {

/// Of the boot clock, which nobody can set, and which goes on while the machine sleeps.
using Moment = std::chrono::milliseconds;

/// What was asked for, and what the site says.
struct Rules {
  Moment grace{};                          ///< before SIGKILL, if the time is over or the job is cancelled
  bool end_with_command = false;           ///< what the command leaves behind does not hold the lease
  std::optional<Moment> idle_leftovers{};  ///< what it leaves behind, and computes nothing, holds it so long
};

// How far the run has come.

/// The command runs.
struct Running {
  EndOfCommand end{};
};
/// The command has ended. What it has left behind is not known yet.
struct CommandOver {
  EndOfRest end{};
};
/// What its user was told of the processes that the command has left behind.
enum class UserTold { nothing, that_they_live, that_they_were_asked };
/// Processes that the command has left behind hold the lease.
struct LeftBehind {
  EndOfRest end{};
  Moment judged_at{};    ///< until then they may end without a word
  bool is_new = true;    ///< they have just been left behind, or asked to end
  Moment computed_at{};  ///< when they were last known to compute
  UserTold told = UserTold::nothing;
};
/// This process has no part in the lease any more.
struct Over {};

struct State {
  std::variant<Running, CommandOver, LeftBehind, Over> stage{};
  EndedBy ended_by = EndedBy::itself;  ///< so far; final once the command has ended, but for a waiter
  Moment granted{};
  std::optional<JobTime> time{};        ///< nullopt: none, or it does not matter any more
  std::optional<Moment> watch_until{};  ///< until then what only the wait needed is kept
};

// What has happened.

/// The command has started.
struct CommandBegun {};
/// Somebody has asked by SIGTERM that the job end.
struct EndAsked {
  bool is_cancel = false;
};
/// The lease yields, and somebody waits for its devices.
struct DevicesWanted {
  Moment grace;  ///< between SIGTERM and SIGKILL
};
/// The wait is over: what is due may be done.
struct Woke {};
/// The answer to ReadTime: the time limit as the ticket says now; nullopt: it cannot be read.
struct TimeRead {
  std::optional<Moment> time;
};
struct CommandEnded {
  std::optional<EndAsked> asked;  ///< just before
};
/// What a look at the processes has found that the command has started.
enum class ProcessesSeen {
  nothing,
  perhaps_nothing,  ///< but while it looked, a process has ended, which may have started another
  something,
};
/// After the end of the command, and after each wait since then.
struct Looked {
  ProcessesSeen seen;
};
/// The answer to AskDriver. True also if that cannot be known.
struct DriverAsked {
  Reading<bool> computes = false;  ///< absent: not known
};
/// By Ctrl-C, or because the terminal has closed: what was left behind is to be left alone.
struct ToldToLeave {
  bool by_hang_up = false;
};
using Event = std::variant<CommandBegun, EndAsked, DevicesWanted, Woke, TimeRead, CommandEnded, Looked,
                           DriverAsked, ToldToLeave>;

struct TimedEvent {
  Moment now;
  Event what;
};

// What to do.

/// Wait on.
struct Nothing {};
/// Send these signals.
struct Send {
  EndAction what;
};
/// Say that the time is over, hang up a shell, and send these signals.
struct EndForTime {
  EndAction what;
  Moment time;  ///< the limit
};
/// Say for whom it ends, hang up a shell, and send these signals.
struct EndForWaiter {
  EndAction what;
  Moment grace;  ///< as DevicesWanted
};
/// Read the time limit, which somebody may have changed. The answer is TimeRead.
struct ReadTime {};
/// Warn that the time will be over.
struct Warn {
  Moment time;  ///< the limit
  Moment left;
};
/// Give back what only the wait needed.
struct EndWatch {};
/// Send these signals to what the command has left behind, and note how the command ended.
struct NoteEnd {
  EndAction what;
};
/// Look once more, at once.
struct LookAgain {};
/// Tell those who want to know that the command has ended: its lease goes on. Do EndWatch too.
struct TellEnd {};
/// Ask whether what was left behind computes. The answer is DriverAsked.
struct AskDriver {};
/// Name the processes that hold the lease, and say how to end them.
struct TellLeft {
  bool were_asked = false;  ///< they got SIGTERM, and nobody kills them
};
/// Give the lease back.
struct GiveBack {
  enum class Why { nothing_left, with_command, idle } why;
};
/// Give up our part of the lease: what was left behind still holds it.
struct Leave {};
using Action = std::variant<Nothing, Send, EndForTime, EndForWaiter, ReadTime, Warn, EndWatch, NoteEnd,
                            LookAgain, TellEnd, AskDriver, TellLeft, GiveBack, Leave>;

struct Step {
  State state;
  Action action;
};

/// Before the start of the command. `time`: the time limit of the lease, which counts from the
/// grant.
State begin(const std::optional<Moment>& time, Moment granted);

Step next(const Rules& rules, State state, const TimedEvent& event);

/// When the next Woke is due at the latest. nullopt: never.
std::optional<Moment> next_due(const State& state, Moment now);
/// The same of what has to be done in time even if the terminal has stopped this process.
std::optional<Moment> next_end(const State& state);

}  // namespace berth::supervise::leased_run
