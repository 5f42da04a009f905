#include "berth/queue/expectation.h"

#include <algorithm>
#include <vector>

namespace berth {
namespace {

constexpr Moment kLeast = 600;
constexpr Moment kLeastLimit = 60;
constexpr Moment kMost = 86'400;
// Of which nothing is known. With less, requests that give an honest limit wait longer than those that give
// none; with more, the longest waits are longer (docs/benchmarks.md, row 14).
constexpr Moment kUnknown = 6 * 3600;
constexpr std::size_t kRunsOfMedian = 5;
constexpr std::size_t kRunsOfQuantile = 20;
constexpr Moment kMargin = 3;

/// The value that `percent` of the last `most` do not exceed.
Moment quantile(std::span<const Moment> lasted, std::size_t most, std::size_t percent) {
  const auto last = lasted.last(std::min(most, lasted.size()));
  std::vector<Moment> sorted(last.begin(), last.end());
  std::ranges::sort(sorted);
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

}  // namespace

std::optional<Expectation> expectation_of(std::optional<Moment> limit_s, std::span<const Moment> lasted,
                                          const QueueRules& rules) {
  if (rules.expect == Expect::none) return std::nullopt;
  if (rules.expect == Expect::limits) lasted = {};
  if (lasted.empty()) return Expectation{limit_s ? std::clamp(*limit_s, kLeastLimit, kMost) : kUnknown};
  const Moment median = quantile(lasted, kRunsOfMedian, 50);
  Expectation expectation{std::clamp(std::min(median, limit_s.value_or(median)), kLeast, kMost)};
  if (!limit_s) expectation.likely_s = kMargin * quantile(lasted, kRunsOfQuantile, 90);
  return expectation;
}

}  // namespace berth
