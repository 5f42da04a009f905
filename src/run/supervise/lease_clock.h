#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "berth/lease/acquire.h"
#include "berth/supervise/model/time_limit.h"

namespace berth::supervise {

/// The time limit of a lease that this process holds. It goes by the boot clock, which goes on
/// while the machine sleeps, and which nobody can set.
class LeaseClock {
 public:
  /// Counts from the grant. REQUIRES: the lease outlives this object.
  explicit LeaseClock(leasing::HeldLease& lease);

  /// How long until something is due. nullopt: never, because the lease has no time limit, or its
  /// time is over.
  std::optional<std::chrono::milliseconds> left() const;
  /// What is due now: each step once. First looks whether the lease was extended meanwhile; then
  /// the end is put off, and another warning will come.
  TimeDue due_now();
  /// REQUIRES: the lease has a time limit.
  std::chrono::seconds time() const;

 private:
  std::chrono::milliseconds since_grant() const;

  leasing::HeldLease& lease_;
  std::chrono::milliseconds granted_;
  std::optional<JobTime> job_;
  bool is_over_ = false;
};

/// The warning to the user before a lease ends. `time`: its time limit.
std::string warning_of(std::chrono::milliseconds time, const std::string& lease_name);

}  // namespace berth::supervise
