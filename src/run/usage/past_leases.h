#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/simulate/replay.h"
#include "berth/verdict/ledger.h"

// Past leases as a workload, so that a site can see what other rules would have meant for its own
// jobs.
namespace berth {

/// The request of a lease.
struct RecordedWish {
  std::int64_t joined_s = 0;             ///< when it joined the queue
  std::optional<std::int64_t> time_s{};  ///< the last value of Ticket::time_s
  bool whole = true;                     ///< false: for a share of the memory
  bool yields = false;

  bool operator==(const RecordedWish&) const = default;
};

/// What a lease used of a device that it had as a whole, as an agent saw it from its grant to its
/// end.
struct RecordedFigures {
  Reading<std::uint64_t> energy_mj{};  ///< by the counter of the card, as far as looks asked for it
  /// Whether no look saw another process that computes, or clocks that heat or power slowed.
  /// Absent: not known, as if looks are missing.
  Reading<bool> clean{};

  bool operator==(const RecordedFigures&) const = default;
};

/// A lease as the agent saw it. Times are seconds since the epoch.
struct RecordedLease {
  TicketId id;
  std::string user;
  std::int64_t begun_s = 0;
  std::optional<std::int64_t> ended_s{};  ///< nullopt: it lives
  std::vector<std::size_t> devices{};     ///< by their places in RecordedLeases::devices
  /// nullopt: a Berth that did not record this has recorded the lease.
  std::optional<RecordedWish> wish{};
  std::map<std::size_t, RecordedFigures> figures{};  ///< likewise by device, as far as they are known

  bool operator==(const RecordedLease&) const = default;
};

/// All leases that lived at some moment of a span of time.
struct RecordedLeases {
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  /// The span begins later than was asked: before that there were too many leases.
  bool is_cut = false;
  std::vector<std::string> devices{};   ///< UUIDs of the devices that were seen in the span
  std::vector<RecordedLease> leases{};  ///< in any order
  /// If they were asked for: the load of each device in percent, and its memory in use in MiB, in
  /// steps of this length from from_s on.
  std::int64_t step_s = 0;
  std::vector<std::vector<Reading<int>>> loads{};
  std::vector<std::vector<Reading<int>>> memories{};  ///< none: who told the loads does not tell them

  bool operator==(const RecordedLeases&) const = default;
};

/// How many are read at most: a document of a few MiB. Of more, the newest are read.
inline constexpr std::size_t kMostRecordedLeases = 20'000;

/// How many leases did not become jobs of the workload, and why.
struct LeftOut {
  std::string_view because;  ///< follows "12 leases: "
  std::size_t leases = 0;

  bool operator==(const LeftOut&) const = default;
};

struct RecordedWorkload {
  Workload workload;
  Replay recorded;                  ///< what became of its jobs
  std::vector<LeftOut> left_out{};  ///< only reasons that some lease had
};

/// Pure. A lease on n whole devices is a job of n that may have any.
///
/// A look that comes later sees the end of a lease. So the lease ended, at the latest, when the
/// next lease on one of its devices began. A lease that still lives lasts until the end of the
/// span. A job that ran when the span began counts as granted at once, because nobody knows for
/// whom it had to wait. For the same reason, a job that waited then counts as if it came when the
/// span began. What a job took beyond its time is added to its time. `devices`: the number of
/// devices, if it is not the number of those that were seen.
RecordedWorkload recorded_workload(const RecordedLeases& recorded, std::optional<std::size_t> devices = {});

}  // namespace berth
