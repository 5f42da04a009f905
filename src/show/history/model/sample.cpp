#include "berth/history/model/sample.h"

#include <algorithm>
#include <array>

#include "berth/usage/usage.h"

namespace berth::history {
namespace {

void raise(Reading<int>& most, const Reading<int>& value) {
  if (value && (!most || *value > *most)) most = value;
}

}  // namespace

void SampleMerger::Mean::add(const Reading<int>& value) {
  if (!value) return;
  sum += *value;
  ++count;
}

Reading<int> SampleMerger::Mean::value() const {
  if (count == 0) return std::nullopt;
  return static_cast<int>((sum + count / 2) / count);
}

void SampleMerger::add(const Sample& sample) {
  utilization_.add(sample.utilization_percent);
  power_.add(sample.power_w);
  leased_.add(sample.leased_percent);
  raise(memory_used_mib_, sample.memory_used_mib);
  raise(temperature_c_, sample.temperature_c);
}

Sample SampleMerger::merged() const {
  return {utilization_.value(), memory_used_mib_, temperature_c_, power_.value(), leased_.value()};
}

std::vector<SampleRow> merged_rows(std::span<const SampleRow> rows, std::int64_t step_s) {
  std::map<std::pair<std::int64_t, std::string_view>, SampleMerger> steps;
  for (const SampleRow& row : rows) steps[{step_of(row.time_s, step_s), row.uuid}].add(row.sample);
  std::vector<SampleRow> merged;
  merged.reserve(steps.size());
  for (const auto& [key, merger] : steps)
    merged.push_back({key.first, std::string(key.second), merger.merged()});
  return merged;
}

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

namespace {

// Each a multiple of the tiers' steps that it may stand for, and kind to the eye on an axis.
constexpr std::array<std::int64_t, 15> kSteps{10,   20,   30,   60,    120,   300,   600,  900,
                                              1800, 3600, 7200, 14400, 21600, 43200, 86400};

}  // namespace

Grid grid_for(std::int64_t now_s, std::int64_t since_s, std::int64_t points, std::int64_t least_step_s) {
  std::int64_t finest = least_step_s;
  for (std::size_t tier = 0; tier + 1 < kTiers.size(); ++tier) {
    if (since_s > kTiers[tier].kept_s) finest = std::max(finest, kTiers[tier + 1].step_s);
  }
  const auto steps = [&](std::int64_t step_s) {
    return (step_of(now_s, step_s) - step_of(now_s - since_s, step_s)) / step_s + 1;
  };
  const auto fits = [&](std::int64_t step_s) { return step_s >= finest && steps(step_s) <= points; };
  const auto found = std::ranges::find_if(kSteps, fits);
  std::int64_t step_s = found == kSteps.end() ? kSteps.back() : *found;
  while (steps(step_s) > std::max<std::int64_t>(2, points)) step_s += kSteps.back();
  return {{step_of(now_s - since_s, step_s), step_of(now_s, step_s) + step_s}, step_s};
}

std::vector<Sample> resampled(std::span<const SampleRow> rows, const Grid& grid) {
  const auto count = static_cast<std::size_t>((grid.span.to_s - grid.span.from_s) / grid.step_s);
  std::vector<SampleMerger> mergers(count);
  for (const SampleRow& row : rows) {
    if (row.time_s < grid.span.from_s || row.time_s >= grid.span.to_s) continue;
    mergers[static_cast<std::size_t>((row.time_s - grid.span.from_s) / grid.step_s)].add(row.sample);
  }
  std::vector<Sample> samples;
  samples.reserve(count);
  for (const SampleMerger& merger : mergers) samples.push_back(merger.merged());
  return samples;
}

}  // namespace berth::history
