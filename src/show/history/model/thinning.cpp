#include "berth/history/model/thinning.h"

#include <algorithm>

#include "berth/history/model/sample.h"
#include "berth/usage/usage.h"

namespace berth::history {
namespace {

Span span_to_thin(const std::optional<std::int64_t>& oldest_s, std::int64_t before_s, std::int64_t step_s) {
  if (!oldest_s) return {};
  const std::int64_t from_s = step_of(*oldest_s, step_s);
  // Whole steps of what they become, so that none is made of two halves.
  const Span span{from_s, step_of(std::min(before_s, from_s + kThinnedAtOnce), step_s)};
  return span.empty() ? Span{} : span;
}

}  // namespace

std::int64_t uncovered_s(std::span<const Span> spans, Span whole) {
  std::int64_t uncovered = 0;
  std::int64_t until_s = whole.from_s;
  for (const Span& span : spans) {
    uncovered += std::max<std::int64_t>(0, std::min(span.from_s, whole.to_s) - until_s);
    until_s = std::max(until_s, span.to_s);
  }
  return uncovered + std::max<std::int64_t>(0, whole.to_s - until_s);
}

Thinning thinning(const Oldest& oldest, std::int64_t now_s) {
  Thinning plan;
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
    const std::int64_t step_s = kTiers[std::min(tier + 1, kTiers.size() - 1)].step_s;
    plan.samples[tier] = span_to_thin(oldest.samples[tier], now_s - kTiers[tier].kept_s, step_s);
  }
  plan.accounts = span_to_thin(oldest.accounts, now_s - kAccountsKept, 3600);
  return plan;
}

std::map<std::int64_t, std::int64_t> rows_to_drop(std::map<std::int64_t, std::int64_t> rows_by_user,
                                                  std::int64_t in_all) {
  constexpr std::int64_t kSteps = 8;  // in which a user comes down to the next
  std::map<std::int64_t, std::int64_t> dropped;
  while (in_all > 0) {
    const auto most =
        std::ranges::max_element(rows_by_user, {}, [](const auto& each) { return each.second; });
    if (most == rows_by_user.end() || most->second == 0) break;
    const std::int64_t some = std::min(in_all, (most->second + kSteps - 1) / kSteps);
    dropped[most->first] += some;
    most->second -= some;
    in_all -= some;
  }
  return dropped;
}

bool is_near_bound(std::int64_t used_bytes, std::int64_t most_bytes) {
  return used_bytes > most_bytes - most_bytes / 8;
}

std::optional<Kind> to_forget(const Room& room, std::int64_t most_bytes) {
  if (!is_near_bound(room.used_bytes, most_bytes)) return std::nullopt;
  const auto tier = std::ranges::max_element(room.sample_rows);
  const auto account = std::ranges::max_element(room.account_rows);
  if (*tier >= *account) return static_cast<std::size_t>(tier - room.sample_rows.begin());
  return kAccounts[static_cast<std::size_t>(account - room.account_rows.begin())];
}

}  // namespace berth::history
