#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/history/model/sample.h"
#include "berth/usage/past_leases.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

namespace berth::history {

/// When a look was, by two clocks. Somebody may set the wall clock; the boot clock goes on while
/// the machine sleeps.
struct TimeOfLook {
  std::int64_t wall_s = 0;
  std::chrono::nanoseconds boot{};
};

struct DeviceSeen {
  std::string uuid;
  std::string label;  ///< "3", "3:1"
  std::string name;
  Sample sample;
  Reading<std::uint64_t> energy_mj{};  ///< by its counter; absent also if this look did not ask for it
  Reading<bool> throttled{};           ///< whether heat or power slows its clocks. Absent: not known
};

struct LeasedSeen {
  std::string uuid;
  double share = 1;    ///< share of the device's time; if several leases share the device, it counts once
  Reading<bool> used;  ///< whether a process of the lease computes on it. Absent: not known
  /// Whether another process computes on it, even if the site ignores that one. Absent: not known
  Reading<bool> beside{};
};

struct LeaseSeen {
  TicketId id;
  std::int64_t since_s = 0;  ///< when it was granted, seconds since the epoch
  std::string user;
  std::vector<LeasedSeen> devices;
  std::optional<std::string> job{};  ///< the name of its job; "": a job without a name
  std::optional<RecordedWish> wish{};
};

/// The part of a look that the history needs.
struct Observation {
  TimeOfLook at;
  std::int64_t every_s = 1;  ///< the time until the next look
  std::vector<DeviceSeen> devices;
  std::vector<LeaseSeen> leases;
};

/// Pure. If the readings are stale, it has only the leases.
Observation observe(const Facts& facts, const Ledger& ledger, TimeOfLook at, std::int64_t every_s);

}  // namespace berth::history
