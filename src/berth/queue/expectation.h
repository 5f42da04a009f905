#pragma once

#include <optional>
#include <span>

#include "berth/queue/schedule.h"

// How long a request is expected to last, by its time limit and by earlier runs of the same thing.
namespace berth {

/// In seconds.
struct Expectation {
  Moment expected_s = 0;             ///< as Wish::expected
  std::optional<Moment> likely_s{};  ///< as Wish::likely

  bool operator==(const Expectation&) const = default;
};

/// A run that was over sooner says nothing of how long the next one lasts.
inline constexpr Moment kShortestRun = 60;

/// What the rules make of a time limit and of earlier runs. nullopt: run times do not count here. `lasted`:
/// for how long the runs that count (kShortestRun) had their devices, in seconds, the oldest first.
///
/// The order goes by the median of the last five, or by the limit if that is less, and never by less than ten
/// minutes (a minute where only a limit is known) or more than a day. So nobody gains by being shorter still,
/// and a request that lasts for weeks waits at most as if it lasted a day. Where nothing is known it goes by
/// six hours. Without a limit, devices are kept for three times what nine of ten of the last twenty runs took
/// at most; nullopt: as the rules assume. An expectation never ends a command.
std::optional<Expectation> expectation_of(std::optional<Moment> limit_s, std::span<const Moment> lasted,
                                          const QueueRules& rules);

}  // namespace berth
