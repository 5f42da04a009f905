#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/core/decision.h"
#include "berth/core/noted_leases.h"
#include "berth/core/plan.h"
#include "berth/core/standing.h"

// How a request comes to its lease, as a pure step: what has happened goes in, and what is to be done next
// comes out. The shell (src/berth/lease/acquire.cpp) does it and says what came of it.
//
// The facts are read first, since the driver may take seconds. Then one short decision is made in the store,
// on the ledger as it is by then. If the decision finds that something has changed since the facts were read,
// the request looks again and keeps its place in the queue.
namespace berth {

/// How long to stand in the queue.
struct Patience {
  bool wait = false;                               ///< false: now or not at all
  std::optional<std::chrono::milliseconds> limit;  ///< from the request's begin on; nullopt: for ever
  bool stands_again = false;                  ///< it had a lease and gave way: no limit on waiting counts
  std::chrono::milliseconds tick{5000};       ///< how often to look for changes that no event tells of
  std::chrono::milliseconds far_tick{30000};  ///< the same for who has many before it
};

/// How long others may keep a request before the gate, `now` after it began. nullopt: for ever.
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
  bool facts_are_old = false;
  bool ask_for_locks = false;
  std::set<std::string> refused;  ///< UUIDs that seemed free and could not be locked, until something happens
  bool only_the_order = false;    ///< the next decision is whom to sleep behind, by old facts
  std::optional<TicketId>
      kept_waiting{};  ///< one to which it yields, and which could have started at the last tick
  bool gives_up = false;
  bool looked_last = false;  ///< the time is up, and what it is refused with is of now
  bool far_back = false;
  bool settled = false;                     ///< nothing happened for a moment before the last look
  bool is_pausing = false;                  ///< asleep for that moment, and not for long
  int looks_after_ring = 0;                 ///< still to come, each after such a moment
  std::chrono::milliseconds ring_pause{0};  ///< grows while it is rung for nothing, since anybody may ring
  std::chrono::milliseconds deaf_until{0};
  bool may_free_others = false;  ///< what woke it may have made it somebody else's turn
  Ledger line;                   ///< all who wait, as they were read last
  Moment line_read_at = 0;
  std::set<TicketId> rung;     ///< of those
  std::set<TicketId> unheard;  ///< stopped: rung for nothing, or not to be rung
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
};
/// What came of a decision.
struct LeftGate {
  Decided decided;
  bool far_back = false;  ///< so many stand before it that its turn cannot be near
};
struct Paused {};
struct Named {
  std::map<std::uint32_t, std::string> users;
};
/// While it sleeps behind a rival a period has passed.
struct Ticked {
  std::set<TicketId> passed_over;  ///< of those watched: stopped, or held back by conditions of their own
  bool far_back = false;
  bool leases_changed = false;  ///< since the last look
};
/// What came of ReadLine.
struct LineRead {
  Ledger ledger;
  Moment boot = 0;
  std::set<TicketId> stopped{};  ///< if that was asked for
};
/// What came of Ring.
struct Rang {
  std::set<TicketId> stopped;  ///< who does not hear it before it goes on
};
using What = std::variant<Begun, Looked, LookFailed, LeftGate, Paused, Named, Ticked, LineRead, Rang, Woken>;
struct Event {
  std::chrono::milliseconds now;  ///< since the request began, by a clock that nobody sets
  What what;
};

// What is to be done.

/// Ask the driver and read the books, to be told by Looked or LookFailed.
struct Look {
  bool locks = false;  ///< also who has locked a device without a ticket, which takes the kernel its time

  bool operator==(const Look&) const = default;
};
/// Enter the queue, and the gate at once; at its end anew, where it stands there already. Told by LeftGate.
struct Join {
  std::vector<std::string> candidates;

  bool operator==(const Join&) const = default;
};
/// Enter the gate. Told by LeftGate.
struct Decide {
  bool operator==(const Decide&) const = default;
};
/// Told by Paused.
struct Pause {
  std::chrono::milliseconds period;

  bool operator==(const Pause&) const = default;
};
/// Ask whose names these are, which may ask a directory service. Told by Named.
struct AskNames {
  std::set<std::uint32_t> uids;

  bool operator==(const AskNames&) const = default;
};
/// Tell how it stands, and sleep until the rival no longer waits, somebody rings, or one of the locks and
/// leases may have ended that the rival does not look after. Told by Ticked after each period: the sleep goes
/// on if the answer is the same again. Told by Woken at its end.
struct SleepBehind {
  TicketId rival;
  std::chrono::milliseconds period;
  std::vector<TicketId> watched;     ///< tickets of which Ticked shall say whether they are stopped
  std::vector<std::string> uuids{};  ///< devices that the rival does not look after
  std::vector<TicketId> leases{};    ///< on them
  bool bell = false;                 ///< whether somebody may ring
  std::vector<TicketId> asked{};     ///< leases that yield, to be rung first

  bool operator==(const SleepBehind&) const = default;
};
/// Read all who wait, without the gate. Told by LineRead.
struct ReadLine {
  bool stopped = false;  ///< and look who of them is stopped

  bool operator==(const ReadLine&) const = default;
};
/// Wake these, whose turn it may be. Told by Rang.
struct Ring {
  std::vector<TicketId> tickets;

  bool operator==(const Ring&) const = default;
};
/// Tell how it stands, and sleep until a lock of these devices, one of these leases or one of these processes
/// may have ended. Told by Woken.
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
using Action = std::variant<Look, Join, Decide, Pause, AskNames, ReadLine, Ring, SleepBehind,
                            SleepUntilReleased, Grant, Refuse, Fail>;

struct Step {
  State state;
  Action action;
};
Step next(State state, Event event);

// Inside the gate, where others are kept waiting.

struct InGate {
  Ledger ledger;
  TicketId me;
  /// The rivals right before me that are stopped, up to the first that is not. Seen inside the gate: one that
  /// has gone on since an earlier look waits rightly.
  std::set<TicketId> stopped;
  std::int64_t lease_changes = 0;  ///< as in NotedLeases
  Moment boot = 0;
};
struct Judgement {
  State state;
  Result<Decision> decision;
};
/// What is to become of the ticket `me`. May be asked again on another ledger; the last answer counts.
Judgement decide(State state, InGate gate);

}  // namespace acquisition
}  // namespace berth
