#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "berth/queue/driver_session.h"
#include "berth/queue/gate_answer.h"
#include "berth/queue/plan.h"
#include "berth/queue/queue_order.h"
#include "berth/queue/standing.h"
#include "berth/queue/untaken.h"
#include "berth/verdict/noted_leases.h"

// What a request knows on its way to a lease (acquisition.h). Times are since it began, by a clock
// that nobody can set.
namespace berth {

/// How long to stand in the queue.
struct Patience {
  bool wait = false;                               ///< false: now or not at all
  std::optional<std::chrono::milliseconds> limit;  ///< from the request's begin on; nullopt: for ever
  bool is_requeued = false;   ///< it had a lease and gave way, or had a place: so it may wait for any time
  bool was_accepted = false;  ///< earlier, as possible: a bad day does not refuse it
  std::chrono::milliseconds tick{5000};       ///< how often to look for changes that no event tells of
  std::chrono::milliseconds far_tick{30000};  ///< the same for a request with many before it
};

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
}  // namespace berth
