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
#include "berth/queue/gate_answer.h"
#include "berth/queue/plan.h"
#include "berth/queue/standing.h"
#include "berth/verdict/noted_leases.h"

// How a request gets its lease, as a pure step: what has happened goes in, and what to do next
// comes out. The shell, the code around it (src/berth/lease/acquire.cpp), does that and passes the
// result back in.
//
// The facts are read first, since the driver may take seconds. Then one short decision is made in
// the store, on the ledger as it is by then. If the decision finds that something has changed since
// the facts were read, the request looks again and keeps its place in the queue.
namespace berth {

/// How long to stand in the queue.
struct Patience {
  bool wait = false;                               ///< false: now or not at all
  std::optional<std::chrono::milliseconds> limit;  ///< from the request's begin on; nullopt: for ever
  bool is_requeued = false;  ///< it had a lease and gave way, or had a place: so it may wait for any time
  std::chrono::milliseconds tick{5000};       ///< how often to look for changes that no event tells of
  std::chrono::milliseconds far_tick{30000};  ///< the same for a request with many before it
};

/// How long a request may wait for others to leave the gate. `now`: the time since the request
/// began. nullopt: for ever.
std::optional<std::chrono::milliseconds> limit_at_gate(const Patience& patience,
                                                       std::chrono::milliseconds now);

namespace acquisition {

/// A request under way.
struct State {
  Request request;
  Patience patience;

  Facts facts;        ///< of the last look
  Ledger ledger;      ///< of the last look, or of a later decision
  NotedLeases noted;  ///< before the driver was asked for `facts`
  Ledger judged;      ///< of the last decision
  Moment judged_at = 0;
  Plan plan = Blocked{};
  std::set<TicketId> passed_over;
  Standing standing;

  std::optional<std::chrono::milliseconds> joined_at;
  int attempt = 1;
  bool ask_for_locks = false;
  std::set<std::string> refused;  ///< UUIDs that seemed free but could not be locked, until something happens
  GateFor gate_for = GateFor::devices;
  GateAnswer answer = GateAnswer::wait;  ///< of the last decision
  std::optional<TicketId>
      kept_waiting{};  ///< a rival that could have started at the last tick, and to which it yields
  bool gives_up = false;
  bool looked_last = false;  ///< the time is up, and the reasons for the refusal have just been read
  bool far_back = false;
  /// Set: the driver does not work for it, or no device that it waits for does; since when. The
  /// reason is in `standing`.
  std::optional<std::chrono::milliseconds> hindered_since{};
  std::optional<std::chrono::milliseconds>
      session_since{};                      ///< the first answer of the driver as it is loaded
  bool session_is_old = false;              ///< at the last answer: the driver may be another by now
  bool wants_new_session = false;           ///< a device could be granted, if a driver loaded anew agrees
  bool settled = false;                     ///< nothing had happened for a moment before the last look
  bool is_pausing = false;                  ///< asleep for that moment only
  int looks_after_ring = 0;                 ///< how many are still to come, each after such a moment
  std::chrono::milliseconds ring_pause{0};  ///< grows if it is rung without need, since anybody may ring
  std::chrono::milliseconds deaf_until{0};
  bool may_free_others = false;  ///< the event that woke it may have given another request its turn
  Ledger queue;                  ///< all waiting tickets, as they were read last
  Moment queue_read_at = 0;
  std::set<TicketId> rung;     ///< those of `queue` that it has rung
  std::set<TicketId> unheard;  ///< those that are stopped: not to be rung
  std::chrono::milliseconds pause{0};
};
State begin(Request request, Patience patience);

// What has happened.

struct Begun {};
struct Looked {
  Facts facts;
  Ledger ledger;
  NotedLeases noted;
};
struct LookFailed {
  Error error;
  bool by_driver = false;  ///< and not by what Berth itself keeps
};
/// The result of a decision.
struct LeftGate {
  Decided decided;
  bool far_back = false;  ///< so many tickets are before it that its turn cannot be near
};
struct Paused {};
struct Named {
  std::map<std::uint32_t, std::string> users;
};
/// A period has passed while it slept behind a rival.
struct Ticked {
  std::set<TicketId> passed_over;  ///< those of the watched tickets that are stopped, or held back by their
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
using What = std::variant<Begun, Looked, LookFailed, LeftGate, Paused, Named, Ticked, QueueRead, Rang, Woken>;
struct Event {
  std::chrono::milliseconds now;  ///< since the request began, by a clock that nobody can set
  What what;
};

// What to do next.

/// Ask the driver and read the ledger. The answer is Looked or LookFailed.
struct Look {
  bool locks = false;  ///< also find out who has locked a device without a ticket, which takes the kernel
                       ///< some time
  bool fresh = false;  ///< load the driver anew first: what a command that starts now would meet

  bool operator==(const Look&) const = default;
};
/// Join the queue and enter the gate at once. If the request is in the queue already, it goes to
/// the end. The answer is LeftGate.
struct Join {
  std::vector<std::string> candidates;

  bool operator==(const Join&) const = default;
};
/// Enter the gate. The answer is LeftGate.
struct Decide {
  bool operator==(const Decide&) const = default;
};
/// Sleep for this period. The answer is Paused.
struct Pause {
  std::chrono::milliseconds period;

  bool operator==(const Pause&) const = default;
};
/// Look up the names of these users, which may ask a directory service. The answer is Named.
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
  std::vector<TicketId> tickets;

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
using Action = std::variant<Look, Join, Decide, Pause, AskNames, ReadQueue, Ring, SleepBehind,
                            SleepUntilReleased, Grant, Refuse, Fail>;

struct Step {
  State state;
  Action action;
};
Step next(State state, Event event);

// Inside the gate, while others have to wait.

struct InGate {
  Ledger ledger;
  TicketId me;
  /// The rivals right before me that are stopped, up to the first that is not. This is read inside
  /// the gate, because a rival that goes on after an earlier look has its place back.
  std::set<TicketId> stopped;
  std::int64_t lease_changes = 0;  ///< as in NotedLeases
  Moment boot = 0;
};
struct Judgement {
  State state;
  Result<Decision> decision;
};
/// What to do with the ticket `me`. May be called again with another ledger; the last answer
/// counts.
Judgement decide(State state, InGate gate);

}  // namespace acquisition
}  // namespace berth
