#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "berth/core/job_time.h"
#include "berth/lease/acquire.h"

namespace berth::cli {

/// The time of a lease that this process holds. By the boot clock: it goes on while the machine sleeps, and
/// nobody sets it.
class LeaseClock {
 public:
  /// Counts from now on. `grace` is between SIGTERM and SIGKILL. REQUIRES: the lease outlives it.
  LeaseClock(leasing::HeldLease& lease, std::chrono::seconds grace);

  /// How long until something is due. nullopt: never, as the lease says no time.
  std::optional<std::chrono::milliseconds> left() const;
  /// What is due now, each thing once; SIGKILL again every second. Looks first whether the lease was extended
  /// meanwhile: then its end is put off, and there is another warning.
  TimeStep step();
  /// Its time is over now, whatever it says.
  void end_now(std::chrono::seconds grace);
  /// Whether SIGTERM was due already.
  bool is_over() const { return job_ && job_->asked; }
  std::chrono::seconds time() const;
  std::chrono::seconds grace() const { return std::chrono::duration_cast<std::chrono::seconds>(job_->grace); }

 private:
  std::chrono::milliseconds since_grant() const;
  bool was_extended();

  leasing::HeldLease& lease_;
  std::chrono::nanoseconds granted_;
  std::optional<JobTime> job_;
  bool gives_way_ = false;
};

/// What is said before the end of a lease.
std::string warning_of(const LeaseClock& clock, TicketId lease);

}  // namespace berth::cli
