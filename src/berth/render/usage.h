#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/device.h"
#include "berth/core/error.h"
#include "berth/core/ledger.h"
#include "berth/render/json.h"
#include "berth/render/text.h"

namespace berth::render {

enum class UsageBy { user, device };
std::string_view to_text(UsageBy by);
bool read_value(std::string_view text, UsageBy& by);  ///< false: it is none

/// What one user, or one device, had in a span of time.
struct UsageRow {
  std::string who{};   ///< the user, or the device's UUID
  std::string gpu{};   ///< of a device: "3", "" when not known
  std::string name{};  ///< of a device, "" when not known
  std::string host{};  ///< of a device, where several machines are told of; else ""
  std::uint64_t leases = 0;
  double leased_gpu_hours = 0;  ///< leases that share a device share its time
  double used_gpu_hours = 0;    ///< of these, with a process of the lease computing on the device

  bool operator==(const UsageRow&) const = default;
};

struct Usage {
  UsageBy by = UsageBy::user;
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  std::int64_t unwatched_s = 0;        ///< of this time nobody looked; on several machines, the longest
  std::vector<std::string> missing{};  ///< machines that did not answer
  std::vector<UsageRow> rows{};        ///< most hours first

  bool operator==(const Usage&) const = default;
};

/// docs/schema/usage.json.
std::string usage_json(const Usage& usage, Layout layout);
/// Error: `failure`, when the text is no such document, or of another version.
Result<Usage> usage_from_json(std::string_view text);

/// With a last line that says what it is about and what is not in it.
std::string usage_table(const Usage& usage, const Style& style);

/// What a device did, in steps of equal length. Absent: not known.
struct HistoryRow {
  std::int64_t time_s = 0;
  Reading<int> utilization_percent;
  Reading<int> memory_used_mib;
  Reading<int> temperature_c;
  Reading<int> power_w;
  Reading<int> leased_percent;
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
  std::vector<PastLease> leases;  ///< that had the device in this time, by their beginning
};

/// docs/schema/history.json.
std::string device_history_json(const DeviceHistory& history, Layout layout);

}  // namespace berth::render
