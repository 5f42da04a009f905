#pragma once

#include <cstdint>
#include <span>

#include "berth/queue/order_table.h"

// The fair order: the user who has fewer GPUs comes first. Used by its row of the table alone.
namespace berth {

/// The number of a new request of a user.
///
/// As in start-time fair queueing (Goyal, Vin and Cheng, 1996), with the number of GPUs as the
/// cost. Nobody saves up turns by not asking. A user who has just had a turn stands behind one who
/// has not, although only the live tickets are remembered.
std::int64_t next_fair_number(std::uint32_t uid, std::span<const Numbered> others);

/// The wish comes first whose user would have the fewest GPUs when it starts: those that the user
/// has, and those that the user's earlier wishes ask for. So users who have many wishes each take
/// turns. Among equals the number decides, then the order of coming. The wishes of one user stay in
/// their order. The numbers belong to the user and not to a wish: the user's first wish has the
/// lowest of them.
void sort_by_gpus_of_user(const OrderedRun& run);

}  // namespace berth
