#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "berth/core/schedule.h"

// Whose turn comes before whose. By the order of coming, or fair: who has less comes first.
namespace berth {

std::string_view to_text(TurnOrder order);                      ///< as in the site file: "fifo"
Result<TurnOrder> turn_order_from_text(std::string_view text);  ///< Error: `usage`, what it must be

/// How many GPUs each user has, by uid.
struct GpusByUser {
  std::map<std::uint32_t, std::uint64_t> in_all;
  std::map<std::uint32_t, std::uint64_t> firmly;  ///< without those of leases that yield
};

/// A ticket with a number.
struct Numbered {
  std::uint32_t uid = 0;
  unsigned count = 1;
  std::int64_t turn = 0;
  bool granted = false;
};

/// The number of what a user asks for now, beside what has one: as of start-time fair queueing (Goyal, Vin
/// and Cheng, 1996), with the GPUs that are asked for as the cost. Nobody saves up turns by not asking, and
/// who has just had his turn stands behind who has not, although no more is remembered than who waits or has
/// a lease.
std::int64_t next_turn(std::uint32_t uid, std::span<const Numbered> others);
std::int64_t next_turn(std::uint32_t uid, const Ledger& ledger);
inline constexpr std::int64_t kLastTurn = std::numeric_limits<std::int64_t>::max();

/// The places of the wishes in the order of their turns. REQUIRES: they are in the order in which they came.
///
/// Those that yield stand behind all others. Of those with a number the one comes first whose user would have
/// the fewest GPUs when it starts: those that he has (beside a wish that does not yield, those of leases that
/// yield do not count) and those that his earlier wishes ask for. So users who have many wishes each
/// alternate. Among equals the number decides, then the order of coming. Nobody goes past a wish without a
/// number, since that one waits for whoever came before it, and for nobody else.
std::vector<std::size_t> order_of_turns(std::span<const Wish> wishes, const GpusByUser& has);

/// Those of the ledger who wait, in the order of their turns, with one more that is not in it. Those
/// `passed_over` and those held back have their places; to the turns of others they count as if they did not
/// wait.
std::vector<const Ticket*> in_line(const Ledger& ledger, const std::set<TicketId>& passed_over,
                                   const Ticket* one_more = nullptr);

}  // namespace berth
