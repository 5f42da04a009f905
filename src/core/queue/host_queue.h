#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/queue/backfill.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// The queue as ledger and facts describe it, and the devices to which its indices refer.
struct HostQueue {
  QueueState state;
  std::vector<std::string> uuids;  ///< without GPUs that are split by MIG: their instances count
};

/// The waiting tickets in order, and the leases with the devices that they hold until about when. A
/// ticket has its conditions on readings only as words for people. So each ticket counts as if it
/// had none, on the devices that are free to a request without conditions. `before`: only tickets
/// before this one. Tickets that are `skipped` count as if they did not wait.
HostQueue host_queue_of(const Ledger& ledger, const Facts& facts, Moment now,
                        const std::set<TicketId>& skipped = {}, const Ticket* before = nullptr);

/// The queue counts in milliseconds of the boot clock.
inline constexpr Moment kSecond = 1000;

/// How long it has a device, at most, by what its ticket says: its time limit, and what Berth then
/// needs to end it.
std::optional<Moment> longest_stay(const Ticket& ticket, const SitePolicy& policy);

/// The tickets whose turn it is now, except `me`, which has just found that it is not its turn. If
/// it seems to be the turn of `me`, its own conditions hold it back, and it keeps nothing from
/// others.
std::vector<TicketId> who_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                 std::set<TicketId> skipped, TicketId me);

struct ForeseenStart {
  std::int64_t boot_s = 0;  ///< in seconds of the boot clock
  std::vector<std::string> uuids{};
};

/// About when each waiter starts, and on what: where a ticket goes by run times as foretold_starts,
/// and else as expected_starts of the schedule.
std::map<TicketId, ForeseenStart> expected_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                                  const std::set<TicketId>& skipped = {});

/// Whether there is a device that no lease holds.
bool is_any_unleased(const Ledger& ledger, const Snapshot& snapshot);

}  // namespace berth
