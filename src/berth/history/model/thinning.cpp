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

bool is_near_bound(std::int64_t used_bytes, std::int64_t most_bytes) {
  return used_bytes > most_bytes - most_bytes / 8;
}

std::optional<std::size_t> to_forget(const Room& room, std::int64_t most_bytes) {
  if (!is_near_bound(room.used_bytes, most_bytes)) return std::nullopt;
  const auto most = std::ranges::max_element(room.sample_rows);
  if (*most >= room.account_rows) return static_cast<std::size_t>(most - room.sample_rows.begin());
  return kTiers.size();
}

}  // namespace berth::history
