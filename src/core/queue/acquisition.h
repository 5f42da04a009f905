// Long, since it is one step with its state, its events and its actions: none is read without the
// others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/queue/decision.h"
#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/verdict/verdict.h"

// What a request that waits knows of the driver as it is loaded: the driver may be replaced
// meanwhile. A session that is older than an upgrade still works, but a command that starts now
// loads the new library.
namespace berth::acquisition {

/// It is not loaded: nobody has asked yet, or a sleep has ended the session.
struct NotLoaded {
  bool operator==(const NotLoaded&) const = default;
};
/// At the last answer, the session was young enough for a command to meet the same driver.
struct Loaded {
  std::chrono::milliseconds since;  ///< its first answer

  bool operator==(const Loaded&) const = default;
};
/// At the last answer, the session was so old that the driver may be another by now.
struct LoadedLongAgo {
  bool operator==(const LoadedLongAgo&) const = default;
};
/// A device could be granted by an old session, if a driver that is loaded anew agrees.
struct ToLoadAnew {
  bool operator==(const ToLoadAnew&) const = default;
};
/// The driver does not work for the request, or no device that it waits for does.
struct Failing {
  std::chrono::milliseconds since;

  bool operator==(const Failing&) const = default;
};
using DriverSession = std::variant<NotLoaded, Loaded, LoadedLongAgo, ToLoadAnew, Failing>;

// Times: since the request began.

/// Whether the next look loads the driver anew. While the driver fails, a session that was loaded
/// before may fail for ever: by an old library, for example.
bool loads_anew(const DriverSession& session);
/// Whether the session, if it is kept, is young enough for the next look.
bool is_young(const DriverSession& session, std::chrono::milliseconds now);

/// A lease may have ended, and the next look may grant its devices. If it would need a driver that
/// is loaded anew to do so, it asks this driver alone, and not the old one first.
DriverSession before_grant(const DriverSession& session, std::chrono::milliseconds now);
DriverSession after_answer(const DriverSession& session, std::chrono::milliseconds now);
DriverSession after_failure(const DriverSession& session, std::chrono::milliseconds now);

/// What a request enters the gate for.
enum class GateFor {
  devices,        ///< to be granted what is free, by what the last look saw
  order,          ///< only to know behind which rival to sleep: old facts do for that
  order_by_tick,  ///< the same because a period has passed, and only whether it is its own turn
};

/// What the plan says inside the gate.
enum class FoundInGate {
  granted,
  behind,     ///< a rival comes first
  blocked,    ///< it is first, and too little is free
  held_back,  ///< enough is free, and its own conditions do not hold
};

/// What the facts of the last look are worth inside the gate.
enum class FactsAre {
  current,
  older_than_a_lease,   ///< a lease has come or gone since
  of_an_old_session,    ///< the driver may have been replaced since it was loaded for that look
  silent_about_a_lock,  ///< a device is free and cannot be had, and nobody has asked who locked it
};

/// How the request stands on its own account.
struct Means {
  bool waits = false;         ///< it may wait in the queue
  bool last_attempt = false;  ///< it has looked so often that one more look would not end it either
};

/// What to do with the ticket.
enum class GateAnswer {
  take,
  take_and_look,  ///< nobody else can have the devices then, so the look after it is of now
  look_again,     ///< it keeps its place meanwhile
  wait,
  wait_held_back,  ///< others skip it
  withdraw,
};

/// The decision of a request that is in the gate for devices, and knows all tickets that could
/// change it.
GateAnswer answer_in_gate(FoundInGate found, FactsAre facts, Means means);

}  // namespace berth::acquisition

// Which tickets do not take what is free for them. Such a ticket may be stopped, frozen, or unable
// to reach the gate. Nothing in the lease directory tells so. So each waiter judges by what it has
// seen itself.
namespace berth {

/// A ticket whose turn is before mine.
struct AbleBefore {
  TicketId id;
  std::uint32_t uid = 0;

  bool operator==(const AbleBefore&) const = default;
};

/// One which could have started at each look since then.
struct PassedUpStart {
  AbleBefore turn;
  std::chrono::milliseconds since;  ///< by the clock of the request that looks

  bool operator==(const PassedUpStart&) const = default;
};

/// By what it is judged that a ticket could start.
enum class FreeBy {
  driver,  ///< also by what the driver says
  leases,  ///< as if only leases kept tickets from devices
};

/// The tickets before `me` that could start now, in the order of their turns: each of them if those
/// before it took nothing. nullopt: even if none of them takes anything, `me` could not start.
/// Those `skipped` or held back are left out.
std::optional<std::vector<AbleBefore>> able_before(TicketId me, const Ledger& ledger, const Facts& facts,
                                                   Moment now, const std::set<TicketId>& skipped,
                                                   FreeBy free_by);

/// How long a look at these turns has to wait, in times of the patience, so that a thousand waiters
/// do not all look at once: for each ticket of one's own user, and for at most two of each other.
/// `unread`: so many more were not read. They count if the nearest that was read is of one's own
/// user, as in an array of jobs.
int count_to_wait_for(const std::vector<AbleBefore>& turns, std::uint32_t own_uid, std::size_t unread);

/// What is known after one more look, which found `turns`. If a ticket has left, those behind it
/// could not start before: their time begins now.
std::vector<PassedUpStart> seen_again(const std::vector<PassedUpStart>& before,
                                      const std::vector<AbleBefore>& turns, std::chrono::milliseconds now);

/// Those that do not answer: the first has left its turn for `patience`, the second for twice as
/// long, and so on. The second judges the first as we do, and needs that time to take its own turn.
/// If two of one user do not answer, the next ones of that user do not either, and need no time: a
/// user could else keep everybody waiting with many tickets.
std::set<TicketId> that_do_not_answer(const std::vector<PassedUpStart>& turns, std::chrono::milliseconds now,
                                      std::chrono::milliseconds patience);

/// Whoever lives starts within a tick. Before that people are told nothing.
inline constexpr std::int64_t kAnswersWithinS = 10;

/// What people are told of a ticket that could start: "free for it since 40 s, does not answer
/// (frozen by docker)". "": it has had too little time so far. One look from outside cannot know
/// since when a device is free, but for how long no lease has come or gone.
std::string silence_in_words(const Ticket& ticket, const Facts& facts, Moment now);

// What a request knows on its way to a lease. Times are since it began, by a clock
// that nobody can set.

namespace acquisition {

/// What the last look saw.
struct LastLook {
  Facts facts;
  Ledger ledger;      ///< as of the last decision, if its users have been named since
  NotedLeases noted;  ///< before the driver was asked for `facts`
};

/// What the last decision found.
struct LastDecision {
  Plan plan = Blocked{};
  std::set<TicketId> skipped;
  std::set<TicketId> silent;  ///< those of `skipped` that do not answer
  Moment at = 0;              ///< of the boot clock
};

/// What it has seen of the tickets before it that do not take what is free.
struct Untaken {
  std::vector<PassedUpStart> turns{};                    ///< by the driver, at the last look
  std::chrono::milliseconds looked{0};                   ///< when that was
  std::optional<std::chrono::milliseconds> suspected{};  ///< since when it seems so by the leases alone
  std::chrono::milliseconds pause{0};                    ///< grows while the driver is asked in vain
  std::chrono::milliseconds asks_next{0};
};

// Whether it is in the queue.

/// It has not joined.
struct Outside {};
struct InQueue {
  std::chrono::milliseconds since;
  bool far_back = false;  ///< many tickets are before it
};
/// Its time is up. A ticket behind a rival has looked last when it joined, perhaps hours ago. So it
/// looks once more before it gives up.
struct LooksLast {
  std::chrono::milliseconds since;  ///< in the queue
};
using QueueStage = std::variant<Outside, InQueue, LooksLast>;

/// How it has tried to get what is free, since something happened last.
struct Tries {
  int attempt = 1;
  bool ask_for_locks = false;
  std::set<std::string> refused{};  ///< UUIDs that seemed free but could not be locked
};

/// What the next sleep until a release is.
enum class NextSleep {
  first_pause,  ///< a moment, after an event that the look after it may not explain
  pause,        ///< a quiet moment
  whole,        ///< nothing had happened for such a moment before the last look
};
struct Quiet {
  NextSleep next = NextSleep::pause;
  bool pausing = false;  ///< the last sleep is or was a moment only
};

/// How it listens to those who ring it. Anybody may ring.
struct Listening {
  int looks = 0;                       ///< still to come after a ring, each after a moment
  std::chrono::milliseconds pause{0};  ///< grows if it is rung without need
  std::chrono::milliseconds deaf_until{0};
  /// The event that woke it may have given another request its turn. So it is to ring that one.
  bool may_free_others = false;
};

// What it is doing: which answer it expects.

struct Beginning {};
struct Looking {};
/// In the gate, or on the way there.
struct Deciding {
  GateFor gate_for = GateFor::devices;
  GateAnswer answer = GateAnswer::wait;  ///< the last one, if the store has asked several times
  FactsAre facts = FactsAre::current;    ///< as this answer found them
  Ledger ledger{};                       ///< by which it was given
  std::vector<PassedUpStart> untaken{};  ///< as it was found then
};
/// Before another try to take what is free, or to reach the driver before it has joined.
struct Pausing {};
struct NamingUsers {
  Ledger ledger;          ///< with the tickets of the users
  bool gives_up = false;  ///< the names are for the refusal
};
struct ReadingQueue {};
struct Ringing {
  Ledger queue;  ///< all waiting tickets
  Moment read_at = 0;
  std::set<TicketId> unheard;  ///< those that are stopped: not to be rung
  std::set<TicketId> rung{};
};
struct AsleepBehind {};
struct AsleepUntilReleased {};
/// The devices of the plan are its own.
struct Taking {};
/// It has been refused, or has failed.
struct Ended {};
using Doing = std::variant<Beginning, Looking, Deciding, Pausing, NamingUsers, ReadingQueue, Ringing,
                           AsleepBehind, AsleepUntilReleased, Taking, Ended>;

/// A request under way.
struct State {
  Request request;
  Patience patience;
  LastLook look{};
  LastDecision decision{};
  Standing standing{};  ///< what is told of it; with its ticket, and why the driver fails
  QueueStage stage{};
  Tries tries{};
  DriverSession session{};
  /// When a look found that all devices work, and that only what an admin has excluded keeps them
  /// from it.
  std::optional<std::chrono::milliseconds> excluded_at{};
  Quiet quiet{};
  Listening listening{};
  Untaken untaken{};
  Doing doing{};
};

inline const Behind* behind(const State& state) {
  return std::get_if<Behind>(&state.decision.plan);
}

/// By its own conditions or limits.
inline bool is_held_back(const State& state) {
  const auto* blocked = std::get_if<Blocked>(&state.decision.plan);
  return blocked != nullptr && blocked->held_back;
}

inline bool has_joined(const State& state) {
  return !std::holds_alternative<Outside>(state.stage);
}

inline bool is_far_back(const State& state) {
  const auto* in_queue = std::get_if<InQueue>(&state.stage);
  return in_queue != nullptr && in_queue->far_back;
}

/// By a driver that fails.
inline bool is_hindered(const State& state) {
  return std::holds_alternative<Failing>(state.session);
}

/// A device that is reserved may be lent until then to a request that gives it back in time, or be
/// given to a later request whose turn is first.
inline bool lets_others_pass(const State& state) {
  return state.look.facts.policy.queue.lets_others_pass();
}

/// Those that the last decision skipped by what others see of them: no look is needed to notice
/// that they go on.
inline std::set<TicketId> stopped_before(const State& state) {
  std::set<TicketId> stopped = state.decision.skipped;
  for (const TicketId id : state.decision.silent) stopped.erase(id);
  return stopped;
}

/// How often it looks up. If a thousand waiters looked every few seconds, that would be a load. So
/// a waiter with many tickets before it looks rarely, and may notice late that the ticket before it
/// is stopped.
inline std::chrono::milliseconds usual_period(const State& state) {
  return is_far_back(state) ? state.patience.far_tick : state.patience.tick;
}

/// How long a ticket may leave its turn untaken. Whoever is first looks at each tick at least, and
/// a look takes its time.
inline std::chrono::milliseconds patience_with_others(const State& state) {
  return state.patience.tick * 3 / 2;
}

/// Whether it stands behind this later ticket only because it yields: a program that does not know
/// that waits for it.
inline bool yields_to_a_later(const State& state, const Ticket& other) {
  const Ticket& mine = state.standing.ticket;
  return mine.yield_s && !other.yield_s && mine.id < other.id;
}

inline bool may_go_past(const State& state) {
  return berth::may_go_past(state.standing.ticket);
}

/// Another tool may take a lock and give it back at once, to test it. That is no reason to refuse.
inline constexpr int kAttempts = 5;

inline bool is_last_attempt(const State& state) {
  return state.tries.attempt >= kAttempts;
}

/// The request was told an answer that does not belong to what it is doing.
inline Error not_asked_for() {
  return {ErrorCode::failure,
          "a request got an answer that it had not asked for: this is a fault of Berth, please report it"};
}

}  // namespace acquisition

// How a request gets its lease, as a pure step: what has happened goes in, and what to do next
// comes out. The loop around it (lease/acquire.cpp) does that and passes the result
// back in.
//
// The facts are read first, since the driver may take seconds. Then one short decision is made in
// the store, on the ledger as it is by then. If the decision finds that something has changed since
// the facts were read, the request looks again and keeps its place in the queue.
namespace acquisition {

State begin(Request request, Patience patience);

// What has happened.

struct RequestBegun {};
struct Looked {
  Facts facts;
  Ledger ledger;
  NotedLeases noted;
};
struct LookFailed {
  Error error;
  bool by_driver = false;  ///< and not by what Berth itself keeps
};
/// The answer to a Look by news, if there is none: nothing was asked.
struct NoNews {};
/// The result of a decision.
struct LeftGate {
  Decided decided;
  bool far_back = false;  ///< so many tickets are before it that its turn cannot be near
};
struct Paused {};
struct UsersNamed {
  std::map<std::uint32_t, std::string> users;
};
/// A period has passed while it slept behind a rival.
struct Ticked {
  std::set<TicketId> skipped;  ///< those of the watched tickets that are stopped, or held back by their
                               ///< own conditions
  bool far_back = false;
  bool leases_changed = false;  ///< since the last look or decision; also if one has ended without a word
};
/// The result of ReadQueue.
struct QueueRead {
  Ledger ledger;
  Moment boot = 0;
  std::set<TicketId> stopped{};  ///< filled if ReadQueue asked for it
};
/// The result of Ring.
struct Rang {
  std::set<TicketId> stopped;  ///< the tickets whose process is stopped, and so does not hear
};
using Event = std::variant<RequestBegun, Looked, LookFailed, NoNews, LeftGate, Paused, UsersNamed, Ticked,
                           QueueRead, Rang, Woken>;
struct TimedEvent {
  std::chrono::milliseconds now;  ///< since the request began, by a clock that nobody can set
  Event what;
};

// What to do next.

/// Ask the driver and read the ledger. The answer is Looked or LookFailed.
struct Look {
  bool locks = false;    ///< also find out who has locked a device without a ticket, which takes the kernel
                         ///< some time
  bool fresh = false;    ///< load the driver anew first: what a command that starts now would meet
  bool by_news = false;  ///< only if what is excluded has changed since the last look

  bool operator==(const Look&) const = default;
};
/// Join the queue and enter the gate at once. If the request is in the queue already, it goes to
/// the end. The answer is LeftGate.
struct Join {
  std::vector<std::string> candidates;

  bool operator==(const Join&) const = default;
};
/// Enter the gate. The answer is LeftGate.
struct EnterGate {
  bool operator==(const EnterGate&) const = default;
};
/// Sleep for this period. The answer is Paused.
struct Pause {
  std::chrono::milliseconds period;

  bool operator==(const Pause&) const = default;
};
/// Look up the names of these users, which may ask a directory service. The answer is UsersNamed.
struct AskNames {
  std::set<std::uint32_t> uids;

  bool operator==(const AskNames&) const = default;
};
/// Tell how the request stands, and sleep. The sleep ends when the rival no longer waits, when
/// somebody rings, or when a lock or lease may have ended that the rival does not watch. The answer
/// is Ticked after each period; if the next action is the same again, the sleep goes on. At the end
/// of the sleep, the answer is Woken.
struct SleepBehind {
  TicketId rival;
  std::chrono::milliseconds period;
  std::vector<TicketId> watched;     ///< Ticked is to say which of these tickets are stopped
  std::vector<std::string> uuids{};  ///< devices that the rival does not watch
  std::vector<TicketId> leases{};    ///< the leases on them
  bool bell = false;                 ///< whether somebody may ring
  std::vector<TicketId> asked{};     ///< leases that yield, to be rung first
  bool ends_session = false;         ///< the driver as it is loaded would be too old for the next look

  bool operator==(const SleepBehind&) const = default;
};
/// Read all waiting tickets, without the gate. The answer is QueueRead.
struct ReadQueue {
  bool stopped = false;  ///< also find out which of them are stopped

  bool operator==(const ReadQueue&) const = default;
};
/// Ring these tickets, whose turn it may be. The answer is Rang.
struct Ring {
  std::vector<Ticket> tickets;  ///< as they were when the queue was read

  bool operator==(const Ring&) const = default;
};
/// Tell how the request stands, and sleep until a lock of these devices, one of these leases or one
/// of these processes may have ended. The answer is Woken.
struct SleepUntilReleased {
  std::vector<std::string> uuids;
  std::vector<TicketId> leases;
  std::vector<std::uint32_t> processes;
  std::chrono::milliseconds period;
  std::vector<TicketId> asked{};  ///< leases that yield, to be rung first

  bool operator==(const SleepUntilReleased&) const = default;
};
/// The devices of the plan are ours.
struct Grant {
  /// By facts that may be older than the end of a lease: look before anything begins. If the
  /// devices do not fit, they go back, and the answer is Woken.
  bool by_old_facts = false;

  bool operator==(const Grant&) const = default;
};
/// Leave the queue. `standing` says why.
struct Refuse {
  bool operator==(const Refuse&) const = default;
};
struct Fail {
  Error error;

  bool operator==(const Fail&) const = default;
};
using Action = std::variant<Look, Join, EnterGate, Pause, AskNames, ReadQueue, Ring, SleepBehind,
                            SleepUntilReleased, Grant, Refuse, Fail>;

struct Step {
  State state;
  Action action;
};
Step next(State state, TimedEvent event);

}  // namespace acquisition

}  // namespace berth
