#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace berth::history {

/// Samples in steps of `step_s` are kept for `kept_s`; older ones become samples of the next tier.
struct Tier {
  std::int64_t step_s;
  std::int64_t kept_s;
};
inline constexpr std::int64_t kDay = 86'400;
inline constexpr std::array<Tier, 2> kTiers{{{10, 3 * kDay}, {300, 56 * kDay}}};
/// Leases, and the hours counted of them.
inline constexpr std::int64_t kAccountsKept = 400 * kDay;

/// A span of time, seconds since the epoch; without its end.
struct Span {
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;

  bool empty() const { return to_s <= from_s; }
  bool operator==(const Span&) const = default;
};

/// How much of `whole` none of the spans has. REQUIRES: they are in the order of their beginnings.
std::int64_t uncovered_s(std::span<const Span> spans, Span whole);

/// The oldest that the file has of each kind. nullopt: it has nothing of it.
struct Oldest {
  std::array<std::optional<std::int64_t>, kTiers.size()> samples;
  std::optional<std::int64_t> accounts;
};

/// What is to be thinned now. An empty span: nothing.
struct Thinning {
  std::array<Span, kTiers.size()> samples;  ///< to be merged into the next tier; of the last, to be dropped
  Span accounts;                            ///< to be dropped

  bool operator==(const Thinning&) const = default;
};

/// How often it is asked for, and at most how much of each kind goes at a time. So a clock that is years
/// ahead for an hour costs some hours of the oldest, and not everything.
inline constexpr std::int64_t kThinningEvery = 600;
inline constexpr std::int64_t kThinnedAtOnce = 3600;

Thinning thinning(const Oldest& oldest, std::int64_t now_s);

/// How much room the file takes.
struct Room {
  std::int64_t used_bytes = 0;
  std::array<std::int64_t, kTiers.size()> sample_rows{};
  std::int64_t account_rows = 0;
};

/// Where the file has come near to its bound: whether samples of a tier (its number), or accounts
/// (kTiers.size()) have most rows, and so lose their oldest. nullopt: there is room.
std::optional<std::size_t> to_forget(const Room& room, std::int64_t most_bytes);
bool is_near_bound(std::int64_t used_bytes, std::int64_t most_bytes);

}  // namespace berth::history
