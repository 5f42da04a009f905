#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/simulate/replay.h"
#include "berth/verdict/ledger.h"

namespace berth {

/// How long leases, and the hours counted from them, are kept, in seconds.
inline constexpr std::int64_t kAccountsKept = std::int64_t{400} * 86'400;

enum class UsageBy { user, device, job };
constexpr auto words_of(UsageBy) {
  return std::to_array<std::string_view>({"user", "device", "job"});
}

/// The hours of one user, of one device, or of a user's jobs with one name, in a span of time.
struct UsageRow {
  std::string who{};   ///< the user (also the user of a job), or the device's UUID
  std::string gpu{};   ///< of a device: "3"; "" if not known
  std::string name{};  ///< of a device; "" if not known
  std::string host{};  ///< if there are several machines; else ""
  std::uint64_t leases = 0;
  double leased_gpu_hours = 0;  ///< leases that share a device share its time
  double used_gpu_hours = 0;    ///< of these, with a process of the lease computing on the device
  std::string job{};            ///< by job: its name; "" for all jobs without a name

  bool operator==(const UsageRow&) const = default;
};

struct Usage {
  UsageBy by = UsageBy::user;
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  std::int64_t unwatched_s = 0;        ///< how long nobody looked; for several machines, the longest
  std::vector<std::string> missing{};  ///< machines that did not answer
  std::vector<UsageRow> rows{};        ///< most hours first

  bool operator==(const Usage&) const = default;
};

/// Whether a user's name means the same user on all machines, or another one on each.
enum class UsersAre { of_all_hosts, of_hosts };

/// The answers of several machines, by name, to the same question, as one answer. A user's hours
/// are added up, or told for each machine; a device has its machine's name. `missing`: machines
/// that did not answer. Pure.
Usage total_usage(UsageBy by, const std::vector<std::pair<std::string, Usage>>& told,
                  std::vector<std::string> missing, UsersAre users = UsersAre::of_all_hosts);

using QuestionParameters = std::map<std::string, std::string, std::less<>>;

/// The question what one device did lately.
struct DeviceQuestion {
  std::string uuid;
  std::int64_t since_s = 24LL * 3600;  ///< how long ago the answer begins
  std::int64_t points = 300;
  std::int64_t least_step_s = 1;  ///< the time between two looks

  bool operator==(const DeviceQuestion&) const = default;
};
/// Reads `device`, `since` and `points`. Error: `usage`, with what is allowed.
Result<DeviceQuestion> device_question(const QuestionParameters& parameters);

/// The question who had how many GPU-hours.
struct UsageQuestion {
  UsageBy by = UsageBy::user;
  std::int64_t since_s = 7LL * 24 * 3600;

  bool operator==(const UsageQuestion&) const = default;
};
/// Reads `by` and `since`. Error: `usage`, with what is allowed.
Result<UsageQuestion> usage_question(const QuestionParameters& parameters);

/// The question which leases there were.
struct LeasesQuestion {
  std::int64_t since_s = 30LL * 24 * 3600;
  std::int64_t points = 0;  ///< with the loads, in so many steps at most; 0: without

  bool operator==(const LeasesQuestion&) const = default;
};
/// Reads `since` and `points`. Error: `usage`, with what is allowed.
Result<LeasesQuestion> leases_question(const QuestionParameters& parameters);

/// What a device did in a step of time. Whole numbers, because more digits would be noise. Absent:
/// not known.
struct Sample {
  Reading<int> utilization_percent;  ///< mean
  Reading<int> memory_used_mib;      ///< most
  Reading<int> temperature_c;        ///< most
  Reading<int> power_w;              ///< mean
  Reading<int> leased_percent;       ///< of the time

  bool operator==(const Sample&) const = default;
};

struct HistoryRow {
  std::int64_t time_s = 0;
  Sample sample;
};

struct PastLease {
  TicketId id;
  std::string user;
  std::int64_t begun_s = 0;
  Reading<std::int64_t> ended_s;  ///< absent: it lives
  bool end_seen = true;           ///< false: it ended at some time after `ended_s`
};

struct DeviceHistory {
  std::string uuid;
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  std::int64_t step_s = 0;
  std::vector<HistoryRow> rows;
  std::vector<PastLease> leases;  ///< those that had the device in this time, by their beginning
};

// Past leases as a workload, so that a site can see what other rules would have meant for its own
// jobs.

/// The request of a lease.
struct RecordedWish {
  std::int64_t joined_s = 0;             ///< when it joined the queue
  std::optional<std::int64_t> time_s{};  ///< the last value of Ticket::time_s
  bool whole = true;                     ///< false: for a share of the memory
  bool yields = false;
  /// Equal for leases of a user that ran the same command. As it is told, it is a number of this
  /// answer alone, which says nothing of the command. nullopt: nobody knows.
  std::optional<std::uint64_t> command{};

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
