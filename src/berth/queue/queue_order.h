#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "berth/queue/schedule.h"

// The order of turns: the order of coming; the fair order, in which the user who has less comes
// first; and, of requests with an expected run time, the order by response ratio (highest response
// ratio next, Brinch Hansen, 1971), in which the one comes first that has waited longest in
// relation to how long it is expected to last. The order is a function of the tickets and of the
// boot clock: nothing in it is of the site file, which somebody may change while they wait.
namespace berth {

/// How many GPUs each user has, by uid.
struct GpusByUser {
  std::map<std::uint32_t, std::uint64_t> in_all;
  std::map<std::uint32_t, std::uint64_t> firmly;  ///< not counting leases that yield
};

/// As the leases of the ledger say.
GpusByUser gpus_by_user(const Ledger& ledger);

/// A ticket with a number.
struct Numbered {
  std::uint32_t uid = 0;
  unsigned count = 1;
  std::int64_t fair_number = 0;
  bool granted = false;
};

/// The number for a new request of a user, given the tickets that have one. As in start-time fair
/// queueing (Goyal, Vin and Cheng, 1996), with the number of GPUs as the cost. Nobody saves up
/// turns by not asking. A user who has just had a turn stands behind one who has not, although only
/// the live tickets are remembered.
std::int64_t next_fair_number(std::uint32_t uid, std::span<const Numbered> others);
std::int64_t next_fair_number(std::uint32_t uid, const Ledger& ledger);
inline constexpr std::int64_t kLastFairNumber = std::numeric_limits<std::int64_t>::max();

/// The places of the wishes in the order of their turns. REQUIRES: they are in the order in which
/// they came.
///
/// Wishes that yield stand behind all others. Of the wishes with a number, the one comes first
/// whose user would have the fewest GPUs when it starts: those that the user has, and those that
/// the user's earlier wishes ask for. For a wish that does not yield, GPUs of leases that yield do
/// not count. So users who have many wishes each take turns. Among equals the number decides, then
/// the order of coming.
///
/// Of the wishes that are expected to last for some time, the one comes first that has waited
/// longest in relation to that time; of wishes with a number, this orders those of the same user.
/// The wish that came first of all of its kind comes first once it has waited for its
/// `longest_wait`.
///
/// No wish goes past a wish of another order. One that has neither a number nor such a time waits
/// for the wishes that came before it, and for no others.
std::vector<std::size_t> queue_order(std::span<const Wish> wishes, const GpusByUser& has, Moment now);

/// Whether the ticket keeps another order than that of coming: it may go past an earlier one that
/// does too.
inline bool may_go_past(const Ticket& ticket) {
  return ticket.fair_number || ticket.expected_s;
}

/// What the order goes by, in milliseconds of the boot clock. Which devices it could have is not in
/// it.
Wish wish_of(const Ticket& ticket, bool passed_over);

/// The waiting tickets of the ledger in the order of their turns, with one more that is not in the
/// ledger. Tickets that are `passed_over` or held back keep their places; for the turns of others
/// they count as if they did not wait.
std::vector<const Ticket*> waiting_in_order(const Ledger& ledger, const std::set<TicketId>& passed_over,
                                            Moment now, const Ticket* one_more = nullptr);

/// The ids of those waiting tickets that can change what `plan` says to `mine` by no longer
/// waiting, or by being held back or not. By response ratio these are the ones that came before
/// mine, those whose turn is before mine, and those that keep others behind themselves. All others
/// have their turn behind mine, whatever becomes of them. In the other orders each ticket can.
std::set<TicketId> those_that_matter(const Ticket& mine, const std::vector<const Ticket*>& waiting,
                                     Moment now);

}  // namespace berth
