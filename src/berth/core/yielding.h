#pragma once

#include <set>
#include <vector>

#include "berth/core/lineup.h"

namespace berth {

/// A lease that is to end, and for whom.
struct Yield {
  TicketId lease;
  TicketId waiter;

  bool operator==(const Yield&) const = default;
};

/// The leases that yield and are to end now, so that those who wait and do not yield can start: for each of
/// them as few as suffice, of these the youngest, and none where not even all would do. Whoever could start
/// anyway makes nobody end. A lease that is ending already, and one that has ended and whose memory is not
/// back, count as gone. Only the first kAsking of the line are asked for. Pure.
std::vector<Yield> who_yields(const Ledger& ledger, const Facts& facts, Moment now,
                              const std::set<TicketId>& passed_over = {});
inline constexpr std::size_t kAsking = 32;

}  // namespace berth
