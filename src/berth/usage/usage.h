#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/device/device.h"
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

}  // namespace berth
