#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/job_time.h"
#include "berth/lease/acquire.h"

namespace berth::cli {

/// The time limit of a lease that this process holds. It goes by the boot clock, which goes on while the
/// machine sleeps, and which nobody can set.
class LeaseClock {
 public:
  /// Counts from now on. `grace`: the time between SIGTERM and SIGKILL. REQUIRES: the lease outlives this
  /// object.
  LeaseClock(leasing::HeldLease& lease, std::chrono::seconds grace);

  /// How long until something is due. nullopt: never, because the lease has no time limit.
  std::optional<std::chrono::milliseconds> left() const;
  /// What is due now: each step once, but SIGKILL again every second. First looks whether the lease was
  /// extended meanwhile; then the end is put off, and another warning will come.
  TimeStep step();
  /// The lease is to end now, whatever its time limit.
  void end_now(std::chrono::seconds grace);
  /// Whether SIGTERM was due already.
  bool is_over() const { return job_ && job_->asked; }
  std::chrono::seconds time() const;
  std::string lease_name() const { return lease_.short_name(); }
  std::chrono::seconds grace() const { return std::chrono::duration_cast<std::chrono::seconds>(job_->grace); }

 private:
  std::chrono::milliseconds since_grant() const;
  bool was_extended();

  leasing::HeldLease& lease_;
  std::chrono::nanoseconds granted_;
  std::optional<JobTime> job_;
  bool gives_way_ = false;
};

/// The warning to the user before a lease ends.
std::string warning_of(const LeaseClock& clock);

}  // namespace berth::cli
