#pragma once

#include <set>
#include <vector>

#include "berth/queue/host_queue.h"

namespace berth {

/// A lease that is to end, and the ticket for which it ends.
struct Preemption {
  TicketId lease;
  TicketId waiter;

  bool operator==(const Preemption&) const = default;
};

/// The leases that yield and are to end now, so that waiting tickets that do not yield can start.
/// For each such ticket in turn, as few leases end as suffice, the youngest of them; none ends if
/// not even all of them would suffice. If a ticket could start anyway, no lease ends for it. A
/// lease that is ending already counts as gone, and so does one that has ended and whose memory is
/// not back. Only the first kMostPreempting tickets of the queue make leases end. Pure.
///
/// The fewest are found by trying sets of leases, small ones first. After kMostSetsTried sets in
/// all, two rules give a set each, and the smaller one ends: leases stay if they can, either the
/// oldest first, or those first that have the fewest devices for the ticket.
std::vector<Preemption> preemptions(const Ledger& ledger, const Facts& facts, Moment now,
                                    const std::set<TicketId>& skipped = {});
inline constexpr std::size_t kMostPreempting = 32;
inline constexpr std::size_t kMostSetsTried = 512;

}  // namespace berth
