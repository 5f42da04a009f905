#include "berth/queue/expected_run_time.h"

#include <algorithm>
#include <vector>

#include "berth/request/request.h"

namespace berth {
namespace {

constexpr Moment kLeast = 600;
// Of which nothing is known. With less, requests that give an honest limit wait longer than those
// that give none; with more, the longest waits are longer (docs/benchmarks.md, row 14).
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
                                          const QueueRules& rules, LimitHolds holds) {
  if (rules.expect == Expect::none) return std::nullopt;
  if (rules.expect == Expect::limits) lasted = {};
  if (lasted.empty()) {
    const bool counts = limit_s && (holds == LimitHolds::yes || rules.expect == Expect::runs);
    if (!counts) return Expectation{kUnknown};
    return Expectation{
        std::clamp(*limit_s, holds == LimitHolds::yes ? kLeastExpectedS : kLeast, kMostExpectedS)};
  }
  const Moment median = quantile(lasted, kRunsOfMedian, 50);
  Expectation expectation{std::clamp(std::min(median, limit_s.value_or(median)), kLeast, kMostExpectedS)};
  if (!limit_s)
    expectation.likely_s = std::min(kMargin * quantile(lasted, kRunsOfQuantile, 90), kLongestTimeS);
  return expectation;
}

std::string_view to_text(ExpectedBy by) {
  switch (by) {
    case ExpectedBy::limit:
      return "limit";
    case ExpectedBy::runs:
      return "runs";
    case ExpectedBy::nothing:
      break;
  }
  return "nothing";
}

ExpectedBy expected_by(const Ticket& ticket) {
  const auto is_limit = [&](Moment least) {
    return ticket.expected_s == std::clamp(*ticket.time_s, least, kMostExpectedS);
  };
  if (ticket.time_s && (is_limit(kLeastExpectedS) || is_limit(kLeast))) return ExpectedBy::limit;
  const bool by_runs = ticket.likely_s || (ticket.time_s && ticket.expected_s != kUnknown);
  return by_runs ? ExpectedBy::runs : ExpectedBy::nothing;
}

void note_expectation(Ticket& draft, std::span<const Moment> lasted, const QueueRules& rules,
                      LimitHolds holds) {
  const auto expectation = expectation_of(draft.time_s, lasted, rules, holds);
  if (!expectation) return;
  draft.expected_s = expectation->expected_s;
  draft.likely_s = expectation->likely_s;
  draft.longest_wait_s = rules.longest_wait_s;
}

}  // namespace berth
