#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/core/schedule.h"
#include "berth/core/verdict.h"

namespace berth {

/// What the ledger and the facts say of a line, and the devices whose places it speaks of.
struct Lineup {
  Line line;
  std::vector<std::string> uuids;  ///< without GPUs that are split: their instances stand for them
};

/// Who waits, in order, and who holds what until about when. A ticket tells its conditions on readings in
/// words only, so each counts as if it had none, on devices that are free to somebody who has none. `before`:
/// only those that stand before this ticket. Those `passed_over` count as if they did not wait.
Lineup lineup_of(const Ledger& ledger, const Facts& facts, Moment now,
                 const std::set<TicketId>& passed_over = {}, const Ticket* before = nullptr);

/// How long at most it keeps a device from somebody who does not yield, by what it says itself.
std::optional<Moment> said_length(const Ticket& ticket);

/// Those who wait and whose turn it is now but for `me`, who has just found that it is not his: if it seems
/// to be, conditions of his own hold him back, which keep nothing from anybody.
std::vector<TicketId> who_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                 std::set<TicketId> passed_over, TicketId me);

/// About when each waiter starts, as the schedule's expected_starts.
std::map<TicketId, Moment> expected_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                           const std::set<TicketId>& passed_over = {});

/// Whether there is a device that no lease holds.
bool is_any_unleased(const Ledger& ledger, const Snapshot& snapshot);

}  // namespace berth
