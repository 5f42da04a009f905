#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "berth/queue/schedule.h"

// When the requests start that go by expected run times. Their order changes with time, and how
// long each of them lasts is not known: so the queue is played to its end several times, each time
// with other run times. A start is told only where these futures agree.
namespace berth {

/// A lease, as far as its ticket says how long it lasts. As the same values of a wish.
struct Tenure {
  TicketId id;
  std::uint32_t uid = 0;
  Moment since = 0;  ///< its grant
  std::optional<Moment> length{};
  std::optional<Moment> likely{};
  std::optional<Moment> expected{};
  bool yields = false;
};

inline constexpr std::size_t kFutures = 15;

/// About when each wish starts and on what, in the order of the queue: as in the middle one of
/// kFutures. nullopt: in one of them it waits more than twice or less than half as long, or the
/// wish yields, is skipped, or is behind the first kForeseen. The same tickets have the same
/// futures wherever and whenever it is asked. `tenures`: of the leases that own holds.
std::vector<std::optional<ExpectedStart>> foretold_starts(const QueueState& queue,
                                                          std::span<const Tenure> tenures,
                                                          const GpusByUser& has, const QueueRules& rules);

}  // namespace berth
