#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/core/replay.h"

// Leases of the past as a workload, so that a site can see what other rules would have made of its own jobs.
namespace berth {

/// What a lease was asked for as.
struct RecordedWish {
  std::int64_t joined_s = 0;             ///< when it joined the queue
  std::optional<std::int64_t> time_s{};  ///< as Ticket::time_s, as it was last
  bool whole = true;                     ///< false: for a share of the memory
  bool yields = false;

  bool operator==(const RecordedWish&) const = default;
};

/// A lease as the agent saw it. Times are seconds since the epoch.
struct RecordedLease {
  TicketId id;
  std::string user;
  std::int64_t begun_s = 0;
  std::optional<std::int64_t> ended_s{};  ///< nullopt: it lives
  std::vector<std::size_t> devices{};     ///< by their places in RecordedLeases::devices
  /// nullopt: it was recorded by a Berth that did not record it.
  std::optional<RecordedWish> wish{};

  bool operator==(const RecordedLease&) const = default;
};

/// All leases that had any of a span of time.
struct RecordedLeases {
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  std::vector<std::string> devices{};   ///< UUIDs of what was seen in the span
  std::vector<RecordedLease> leases{};  ///< in any order

  bool operator==(const RecordedLeases&) const = default;
};

/// As many as are read at a time: a document of a few MiB.
inline constexpr std::size_t kMostRecordedLeases = 20'000;
/// Where they are more. Code: `usage`.
Error too_many_leases();

/// How many leases are no jobs of the workload, and why.
struct LeftOut {
  std::string_view because;  ///< follows "12 leases: "
  std::size_t leases = 0;

  bool operator==(const LeftOut&) const = default;
};

struct RecordedWorkload {
  Workload workload;
  Replay recorded;                  ///< what became of its jobs
  std::vector<LeftOut> left_out{};  ///< those reasons that any lease had
};

/// Pure. A lease on n whole devices is a job of n that may have any.
///
/// The end of a lease is seen by a look that comes later, so it ended at the latest when the next one began
/// on a device of it. A lease that lives lasts until the end of the span. What ran when the span began was
/// granted at once, since nobody knows for whom it had to wait; for the same reason a job that waited then
/// came when the span began. What a job took beyond its time is added to its time. `devices`: how many there
/// are, where those that were seen are not what is meant.
RecordedWorkload recorded_workload(const RecordedLeases& recorded, std::optional<std::size_t> devices = {});

}  // namespace berth
