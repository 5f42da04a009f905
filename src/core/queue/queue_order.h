#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "berth/queue/backfill.h"
#include "berth/queue/order_table.h"

// The order of turns, by the orders of order_table.h; and, of requests with an expected run time,
// the order by response ratio (response_ratio.h). The order is a function of the tickets and of the
// boot clock: nothing in it is of the site file, which somebody may change while they wait.
namespace berth {

/// How many GPUs each user has, by uid.
struct GpusByUser {
  std::map<std::uint32_t, std::uint64_t> in_all;
  std::map<std::uint32_t, std::uint64_t> firmly;  ///< not counting leases that yield
};

/// As the leases of the ledger say.
GpusByUser gpus_by_user(const Ledger& ledger);

/// The places of the wishes in the order of their turns. REQUIRES: they are in the order in which
/// they came.
///
/// Wishes that yield stand behind all others. For a wish that does not yield, GPUs of leases that
/// yield do not count. Wishes with a number stand as the row of its order sorts them
/// (order_table.h).
///
/// Of the wishes that are expected to last for some time, the one comes first that has waited
/// longest in relation to that time; wishes with a number are then sorted by the order of the
/// number. The wish that came first of all of its kind comes first once it has waited for its
/// `longest_wait`.
///
/// No wish goes past a wish of another order. One that has neither a number nor such a time waits
/// for the wishes that came before it, and for no others.
std::vector<std::size_t> queue_order(std::span<const Wish> wishes, const GpusByUser& has, Moment now);

/// Whether the ticket keeps another order than that of coming: it may go past an earlier one that
/// does too.
inline bool may_go_past(const Ticket& ticket) {
  return ticket.number || ticket.expected_s;
}

/// What the order goes by, in milliseconds of the boot clock. Which devices it could have is not in
/// it.
Wish wish_of(const Ticket& ticket, bool skipped);

/// The waiting tickets of the ledger in the order of their turns, with one more that is not in the
/// ledger. Tickets that are `skipped` or held back keep their places; for the turns of others
/// they count as if they did not wait.
std::vector<const Ticket*> waiting_in_order(const Ledger& ledger, const std::set<TicketId>& skipped,
                                            Moment now, const Ticket* one_more = nullptr);

/// The ids of those waiting tickets that can change what `plan` says to `mine` by no longer
/// waiting, or by being held back or not. By response ratio these are the ones that came before
/// mine, those whose turn is before mine, and those that keep others behind themselves. All others
/// have their turn behind mine, whatever becomes of them. In the other orders each ticket can.
std::set<TicketId> those_that_matter(const Ticket& mine, const std::vector<const Ticket*>& waiting,
                                     Moment now);

}  // namespace berth
