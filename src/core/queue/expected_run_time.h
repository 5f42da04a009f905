#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "berth/queue/backfill.h"

// How long a request is expected to last, by its time limit and by earlier runs of the same thing.
// An expectation never ends a command.
namespace berth {

/// In seconds.
struct Expectation {
  Moment expected_s = 0;             ///< as Wish::expected
  std::optional<Moment> likely_s{};  ///< as Wish::likely

  bool operator==(const Expectation&) const = default;
};

/// Within which a ticket can say what is expected of it.
inline constexpr Moment kLeastExpectedS = 60;
inline constexpr Moment kMostExpectedS = 86'400;

/// A run that was over sooner says nothing of how long the next one lasts.
inline constexpr Moment kShortestRun = 60;

/// Whether Berth ends the command at its time limit. Where it does not, a limit says no more than
/// an expectation: who gives one that is too short loses nothing by it.
enum class LimitHolds { yes, no };

/// What the rules make of a time limit and of earlier runs. nullopt: run times do not count here.
/// `lasted`: for how long the runs that count (kShortestRun) had their devices, in seconds, the
/// oldest first.
///
/// The order goes by the median of the last five, or by the limit if that is less, and never by
/// less than ten minutes (a minute where only a limit is known) or more than a day. So nobody gains
/// by being shorter still, and a request that lasts for weeks waits at most as if it lasted a day.
/// Where nothing is known it goes by six hours. Without a limit, devices are kept for three times
/// what nine of ten of the last twenty runs took at most; nullopt: as the rules assume. Where the
/// rules count limits only, one that does not hold counts as none.
std::optional<Expectation> expectation_of(std::optional<Moment> limit_s, std::span<const Moment> lasted,
                                          const QueueRules& rules, LimitHolds holds = LimitHolds::yes);

/// What the expectation of a ticket goes by, as far as the ticket tells it.
enum class ExpectedBy { limit, runs, nothing };
std::string_view to_text(ExpectedBy by);  ///< "limit"
/// REQUIRES: the ticket has an expectation.
ExpectedBy expected_by(const Ticket& ticket);

/// Notes in a ticket that has not joined yet what the order of turns goes by.
void note_expectation(Ticket& draft, std::span<const Moment> lasted, const QueueRules& rules,
                      LimitHolds holds = LimitHolds::yes);

}  // namespace berth
