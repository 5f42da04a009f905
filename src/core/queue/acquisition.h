#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/queue/acquisition_state.h"
#include "berth/queue/ticket_decision.h"
#include "berth/verdict/noted_leases.h"

// How a request gets its lease, as a pure step: what has happened goes in, and what to do next
// comes out. The shell, the code around it (src/core/lease/acquire.cpp), does that and passes the
// result back in.
//
// The facts are read first, since the driver may take seconds. Then one short decision is made in
// the store, on the ledger as it is by then. If the decision finds that something has changed since
// the facts were read, the request looks again and keeps its place in the queue.
namespace berth {

namespace acquisition {

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
/// The answer to a Look by news, if there is none: nothing was asked.
struct NoNews {};
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
using What =
    std::variant<Begun, Looked, LookFailed, NoNews, LeftGate, Paused, Named, Ticked, QueueRead, Rang, Woken>;
struct Event {
  std::chrono::milliseconds now;  ///< since the request began, by a clock that nobody can set
  What what;
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

}  // namespace acquisition
}  // namespace berth
