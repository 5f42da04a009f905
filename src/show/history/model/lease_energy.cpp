#include "berth/history/model/lease_energy.h"

#include <cmath>

namespace berth::history {
namespace {

constexpr double kMillijoulesPerWattSecond = 1000;

}  // namespace

void LeaseTally::see(const DeviceSeen& device, const LeasedSeen& lease, double seconds, bool is_missed) {
  see_energy(device, seconds);
  if (device.throttled.value_or(false) || lease.beside.value_or(false)) is_clean_ = false;
  if (is_missed || !device.throttled || !lease.beside) tells_clean_ = false;
}

void LeaseTally::see_energy(const DeviceSeen& device, double seconds) {
  if (device.sample.power_w)
    since_counter_mj_ += seconds * kMillijoulesPerWattSecond * *device.sample.power_w;
  else
    tells_energy_ = false;
  if (!device.energy_mj) return;
  // The counter begins anew when the driver is loaded.
  if (counter_mj_ && *device.energy_mj < *counter_mj_) tells_energy_ = false;
  energy_mj_ += counter_mj_ ? static_cast<double>(*device.energy_mj) - static_cast<double>(*counter_mj_)
                            : since_counter_mj_;
  since_counter_mj_ = 0;
  counter_mj_ = device.energy_mj;
  ++counters_;
}

RecordedFigures LeaseTally::figures() const {
  RecordedFigures figures;
  if (tells_energy_ && counters_ > 1)
    figures.energy_mj = static_cast<std::uint64_t>(std::llround(energy_mj_ + since_counter_mj_));
  if (!is_clean_ || tells_clean_) figures.clean = is_clean_;
  return figures;
}

}  // namespace berth::history
