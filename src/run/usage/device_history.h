#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/device/device.h"
#include "berth/verdict/ledger.h"

namespace berth {

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
