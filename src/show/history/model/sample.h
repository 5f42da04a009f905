#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "berth/usage/usage.h"

namespace berth::history {

/// Makes one sample from several, each of which covers the same length of time. If some lack a
/// reading, it is made from those that have it.
class SampleMerger {
 public:
  void add(const Sample& sample);
  Sample merged() const;

 private:
  struct Mean {
    std::int64_t sum = 0;
    int count = 0;
    void add(const Reading<int>& value);
    Reading<int> value() const;
  };
  Mean utilization_, power_, leased_;
  Reading<int> memory_used_mib_, temperature_c_;
};

struct SampleRow {
  std::int64_t time_s = 0;  ///< when the step begins, seconds since the epoch; a multiple of the step
  std::string uuid;
  Sample sample;

  bool operator==(const SampleRow&) const = default;
};

/// The beginning of the step that contains a time.
constexpr std::int64_t step_of(std::int64_t time_s, std::int64_t step_s) {
  const std::int64_t rest = time_s % step_s;
  return time_s - (rest < 0 ? rest + step_s : rest);
}

/// The rows in steps of `step_s`, by time and device.
std::vector<SampleRow> merged_rows(std::span<const SampleRow> rows, std::int64_t step_s);

/// Samples in steps of `step_s` are kept for `kept_s`; older ones become samples of the next tier.
struct Tier {
  std::int64_t step_s;
  std::int64_t kept_s;
};
inline constexpr std::int64_t kDay = 86'400;
inline constexpr std::array<Tier, 2> kTiers{{{10, 3 * kDay}, {300, 56 * kDay}}};

/// A span of time, seconds since the epoch; without its end.
struct Span {
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;

  bool empty() const { return to_s <= from_s; }
  bool operator==(const Span&) const = default;
};

/// How much of `whole` is in none of the spans. REQUIRES: they are in the order of their
/// beginnings.
std::int64_t uncovered_s(std::span<const Span> spans, Span whole);

/// The oldest time that the file has of each kind. nullopt: it has none.
struct Oldest {
  std::array<std::optional<std::int64_t>, kTiers.size()> samples;
  std::optional<std::int64_t> accounts;
};

/// What to thin now. An empty span: nothing.
struct Thinning {
  std::array<Span, kTiers.size()> samples;  ///< to be merged into the next tier; those of the last tier, to
                                            ///< be dropped
  Span accounts;                            ///< to be dropped

  bool operator==(const Thinning&) const = default;
};

/// How often to thin, and at most how much of each kind is thinned at a time. So if the clock is
/// years ahead for an hour, some hours of the oldest data are lost, and not everything.
inline constexpr std::int64_t kThinningEvery = 600;
inline constexpr std::int64_t kThinnedAtOnce = 3600;

Thinning thinning(const Oldest& oldest, std::int64_t now_s);

/// The tables of what users have had. How many rows a user has in them is up to the user.
enum class Account { lease, hour, job_hour };
inline constexpr std::array kAccounts{Account::lease, Account::hour, Account::job_hour};

/// The room that the file takes.
struct Room {
  std::int64_t used_bytes = 0;
  std::array<std::int64_t, kTiers.size()> sample_rows{};
  std::array<std::int64_t, kAccounts.size()> account_rows{};
};

/// A tier of samples, or a table of accounts.
using Kind = std::variant<std::size_t, Account>;

/// If the file is near its bound: the kind that has the most rows, and so loses some of its oldest.
/// nullopt: there is room.
std::optional<Kind> to_forget(const Room& room, std::int64_t most_bytes);
/// How many rows to drop of each user, of so many in all: always of the user who has the most left.
/// So a user who fills a table loses what is the user's own, and never what others had.
std::map<std::int64_t, std::int64_t> rows_to_drop(std::map<std::int64_t, std::int64_t> rows_by_user,
                                                  std::int64_t in_all);
bool is_near_bound(std::int64_t used_bytes, std::int64_t most_bytes);

/// The steps of a chart.
struct Grid {
  Span span;  ///< whole steps; the last contains the end of the time that was asked for
  std::int64_t step_s = 0;
};

/// At most `points` steps over the last `since_s` seconds. No step is finer than the samples that
/// are kept of the oldest time, nor finer than `least_step_s`. REQUIRES: since_s > 0, points > 0.
Grid grid_for(std::int64_t now_s, std::int64_t since_s, std::int64_t points, std::int64_t least_step_s);

/// One sample for each step; an empty one if nothing is known. The rows are of one device, of any
/// tiers.
std::vector<Sample> resampled(std::span<const SampleRow> rows, const Grid& grid);

}  // namespace berth::history
