#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "berth/base/error.h"
#include "berth/queue/acquisition.h"
#include "berth/queue/schedule.h"

// A partial ledger, and all that may be concluded from it.
//
// In a long queue, a decision reads only the tickets on which its answer depends. The ledger that
// it gets has all leases. Of the tickets that may wait, it leaves `Ledger::unread` out, of which
// `Ledger::first_unread` is the first. It has each ticket before that one, and the tickets that are
// nearest before the ticket that decides. Which tickets wait elsewhere, it cannot say.
namespace berth {

/// Makes the ledger partial, unless `unread` is empty. `unread`: the ids of the tickets that it
/// leaves out, in order.
void leave_out(Ledger& ledger, const std::vector<TicketId>& unread);

bool is_partial(const Ledger& ledger);

/// How many of the tickets that were left out count as being before mine. A ticket that goes by run
/// times lists later tickets too. If all that were left out are such, none counts; else all do.
std::size_t unread_before(const Ticket& mine, const Ledger& ledger);

/// The leases, this ticket, and the tickets that came before all tickets that were left out: what
/// these get, no ticket that was left out changes. nullopt: its turn may be before one of these; or
/// the ledger is whole.
std::optional<Ledger> those_in_front(const Ledger& ledger, const Ticket& mine);

/// True if the tickets that were left out could change this plan. They cannot in three cases: too
/// few devices are free, whatever waits; the tickets before all of them leave too little; or the
/// rival to sleep behind is nearer than they are, and watches every device for which this ticket
/// waits. REQUIRES: the plan was made for `mine` by this ledger.
bool depends_on_unread(const Plan& plan, const Ticket& mine, const Ledger& ledger);

/// What to read next for a plan that depends on them: the nearest tickets, or those in front.
/// `all`: not only rivals.
ReadOn more_to_read(const Plan& plan, const Ticket& mine, const Ledger& ledger, bool all);

// Inside the gate, while others have to wait: what a request does, by the ledger as it is by then.

/// How long a request may wait for others to leave the gate. `now`: the time since the request
/// began. nullopt: for ever.
std::optional<std::chrono::milliseconds> limit_at_gate(const Patience& patience,
                                                       std::chrono::milliseconds now);

namespace acquisition {

struct InGate {
  Ledger ledger;
  TicketId me;
  /// The rivals right before me that are stopped, up to the first that is not. This is read inside
  /// the gate, because a rival that goes on after an earlier look has its place back.
  std::set<TicketId> stopped;
  std::int64_t lease_changes = 0;  ///< as in NotedLeases
  Moment boot = 0;
  std::chrono::milliseconds now{0};  ///< since the request began, as acquisition::TimedEvent::now
};
struct Judgement {
  State state;
  Result<Decision> decision;
};
/// What to do with the ticket `me`. May be called again with another ledger: then the last answer
/// counts, and is the same as if it were the only one.
Judgement decide(State state, InGate gate);

}  // namespace acquisition

}  // namespace berth

// How a request sleeps that has to wait: behind a rival or until a release, for how long, and what
// wakes it.
namespace berth::acquisition {

/// `left`: until its time is up, more than none.
Action fall_asleep(State& state, std::chrono::milliseconds now, std::chrono::milliseconds left);

// What the end of a sleep says of the next one.

void note_end_of_sleep(Quiet& quiet, Woken woken);
/// What was quiet no longer counts.
void end_quiet(Quiet& quiet);
/// Somebody has rung.
void note_ring(Listening& listening, std::chrono::milliseconds now, std::chrono::milliseconds longest_pause);

/// Only the lock of an original keeps a device from us. So no rival before us looks after that
/// device.
bool watches_original(const State& state, const Behind& me);

}  // namespace berth::acquisition
