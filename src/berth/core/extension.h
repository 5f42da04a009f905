#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "berth/core/lineup.h"

namespace berth {

/// Somebody who waits and would start later.
struct Delayed {
  TicketId waiter;
  Moment start = 0;  ///< as it is reserved for him now

  bool operator==(const Delayed&) const = default;
};

/// The first of the line whose reservation would move back if the lease had this time limit. nullopt:
/// nobody's would. A site without backfill reserves nothing. Pure.
std::optional<Delayed> delayed_by_extension(const Ledger& ledger, const Facts& facts, Moment now,
                                            const std::set<TicketId>& passed_over, TicketId lease,
                                            std::int64_t time_s);

}  // namespace berth
