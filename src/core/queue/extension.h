#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "berth/queue/host_queue.h"

namespace berth {

/// A waiting request that would start later.
struct Delayed {
  TicketId waiter;
  std::int64_t start_s = 0;  ///< about when it starts now, in seconds of the boot clock

  bool operator==(const Delayed&) const = default;
};

/// The first request of the queue whose reservation would move to a later time if the lease had
/// this time limit. nullopt: none would. A site without backfill reserves nothing. Pure.
std::optional<Delayed> delayed_by_extension(const Ledger& ledger, const Facts& facts, Moment now,
                                            const std::set<TicketId>& skipped, TicketId lease,
                                            std::int64_t time_s);

/// The first request that waits for a device of the lease and came before it, where both go by run
/// times and the lease has a time limit: it was first for being short, so it stays so. nullopt:
/// there is none. Pure.
std::optional<TicketId> passed_by_its_limit(const Ledger& ledger, const std::set<TicketId>& skipped,
                                            TicketId lease);

}  // namespace berth
