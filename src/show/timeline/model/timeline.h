#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/machines/host.h"
#include "berth/usage/usage.h"
#include "berth/verdict/ledger.h"

// Who had each device of a machine, who has it, and who will have it about when. Page, `berth
// timeline` and `berth top` draw this one value.
namespace berth {

enum class BarKind {
  lease,
  reservation,  ///< of a request that waits, from about when it starts
  outsider,     ///< processes without a lease
  unusable,     ///< the device cannot be had, and nobody has it
};
constexpr auto words_of(BarKind) {
  return std::to_array<std::string_view>({"lease", "reservation", "outsider", "unusable"});
}

enum class BarEnd {
  over,   ///< it has ended
  limit,  ///< its time limit is over at `until_s`
  open,   ///< nobody knows; `until_s` is the end of the timeline
};
constexpr auto words_of(BarEnd) {
  return std::to_array<std::string_view>({"over", "limit", "open"});
}

struct TimelineBar {
  BarKind kind = BarKind::lease;
  BarEnd end = BarEnd::open;
  std::int64_t from_s = 0;  ///< as all times, seconds since the epoch; may be before the timeline begins
  std::int64_t until_s = 0;
  std::string user;            ///< "": nobody, or not known
  std::string what;            ///< the note or the command; of `unusable` why
  std::optional<TicketId> id;  ///< of the lease or the request
  std::uint32_t uid = 0;       ///< of its owner, while it lives
  bool whole = true;           ///< false: a share of the device
  bool yields = false;
  /// Of a lease that is `open`: about when it ends, as earlier runs of the same thing did. It may
  /// go on, and nothing ends by it. nullopt: nobody knows.
  std::optional<std::int64_t> expected_s{};
  /// Of a lease of the whole device that is over, as the samples of the history tell: the most
  /// memory in use on the device, and the mean use. They are of the steps that lie in the lease as
  /// a whole, so a short lease has none.
  Reading<int> peak_mib{};
  Reading<int> use_percent{};
  /// Likewise what the agent saw from its grant to its end (RecordedFigures).
  Reading<std::uint64_t> energy_mj{};
  Reading<bool> clean{};

  bool operator==(const TimelineBar&) const = default;
};

struct TimelineRow {
  std::string uuid;
  std::string label;
  bool free = false;  ///< a request for one whole device would get it now
  bool idle = false;  ///< leased, and nothing of the lease computes on it
  Reading<std::int64_t> idle_since_s{};
  std::vector<TimelineBar> bars{};    ///< by their beginning
  std::vector<Reading<int>> loads{};  ///< percent, in each step from Timeline::from_s on

  bool operator==(const TimelineRow&) const = default;
};

struct TimelineWaiter {
  TicketId id;
  std::string user;
  std::uint32_t uid = 0;
  std::size_t position = 1;
  unsigned count = 1;
  std::string what;
  std::optional<std::int64_t> starts_at_s{};  ///< about; nullopt: nobody knows
  std::optional<std::int64_t> until_s{};      ///< when its time limit is over then

  bool operator==(const TimelineWaiter&) const = default;
};

/// The leased device that is free first, if each lease takes all of its time, or lasts as expected.
struct NextEnd {
  std::string uuid;
  std::string label;
  std::int64_t at_s = 0;
  bool expected = false;  ///< no time limit says so: earlier runs do

  bool operator==(const NextEnd&) const = default;
};

struct Timeline {
  std::int64_t from_s = 0;
  std::int64_t now_s = 0;
  std::int64_t to_s = 0;
  std::int64_t step_s = 0;              ///< of the loads; 0: no history is kept
  std::vector<TimelineRow> rows{};      ///< in the order of the machine; without GPUs that are split
  std::vector<TimelineWaiter> queue{};  ///< in order
  std::optional<NextEnd> next{};        ///< nullopt also if of no lease is known when it ends

  bool operator==(const Timeline&) const = default;
};

struct TimelineSpan {
  std::int64_t now_s = 0;
  std::int64_t back_s = 6LL * 3600;
  std::int64_t ahead_s = 6LL * 3600;
};
/// How many steps of loads a timeline has at most.
inline constexpr std::int64_t kTimelinePoints = 73;

/// Pure. `past`: of the last back_s, with loads where those are known; nullptr: no history is kept.
/// What lives now is told by the report alone, because a history knows it only from its last look.
Timeline timeline_of(const HostReport& report, const RecordedLeases* past, const TimelineSpan& span);

}  // namespace berth
