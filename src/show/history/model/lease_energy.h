#pragma once

#include <cstdint>

#include "berth/history/model/observation.h"
#include "berth/usage/past_leases.h"

namespace berth::history {

/// Adds up, look after look, what a lease used of a device that it has as a whole. It must see the
/// lease from its first look on.
class LeaseTally {
 public:
  /// One look. `seconds`: since the look before, or since the grant. `is_missed`: between the two
  /// there should have been more looks.
  void see(const DeviceSeen& device, const LeasedSeen& lease, double seconds, bool is_missed);

  /// What the looks come to. The energy is the difference of the card's counter between the first
  /// and the last look that told it; before and after, the power of the looks counts. Absent if
  /// the counter was not told twice, or began anew.
  RecordedFigures figures() const;

 private:
  void see_energy(const DeviceSeen& device, double seconds);

  Reading<std::uint64_t> counter_mj_;
  unsigned counters_ = 0;
  double energy_mj_ = 0;
  double since_counter_mj_ = 0;  ///< by the power of the looks
  bool tells_energy_ = true;
  bool is_clean_ = true;
  bool tells_clean_ = true;
};

}  // namespace berth::history
