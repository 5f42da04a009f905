#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "berth/queue/plan.h"
#include "berth/queue/ticket_decision.h"

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

}  // namespace berth
