#pragma once

#include <string_view>

#include "berth/core/snapshot.h"

namespace berth {

/// The fields of the values in a snapshot under their names in a record. `visit` is called with the name and
/// a reference to the field; the writer and the reader walk the same list, so they cannot drift apart.

template <class SnapshotType, class Visit>
void visit_snapshot(SnapshotType& snapshot, Visit&& visit) {
  visit("taken_at_ns", snapshot.taken_at_ns);
  visit("source", snapshot.source);
  visit("driver_version", snapshot.driver_version);
  visit("cuda_version", snapshot.cuda_version);
  visit("readings", snapshot.readings.bits);
  visit("stale_reason", snapshot.stale_reason);
}

template <class Mig, class Visit>
void visit_mig(Mig& mig, Visit&& visit) {
  visit("mig_parent_uuid", mig.parent_uuid);
  visit("mig_slot", mig.slot);
  visit("mig_gpu_instance", mig.gpu_instance);
  visit("mig_compute_instance", mig.compute_instance);
}

template <class DeviceType, class Visit>
void visit_device(DeviceType& device, Visit&& visit) {
  visit("index", device.index);
  visit("uuid", device.uuid);
  visit("name", device.name);
  visit("pci_bus_id", device.pci_bus_id);
  visit("mig_enabled", device.mig_enabled);
  visit("state", device.state);
  visit("state_reason", device.state_reason);
  visit("compute_capability", device.compute_capability);
  visit("compute_mode", device.compute_mode);
  visit("persistence", device.persistence);
  visit("display_active", device.display_active);
  visit("memory_kind", device.memory.kind);
  visit("total_bytes", device.memory.total_bytes);
  visit("used_bytes", device.memory.used_bytes);
  visit("free_bytes", device.memory.free_bytes);
  visit("reserved_bytes", device.memory.reserved_bytes);
  visit("utilization_percent", device.utilization_percent);
  visit("memory_utilization_percent", device.memory_utilization_percent);
  visit("temperature_c", device.temperature_c);
  visit("power_mw", device.power_mw);
  visit("power_limit_mw", device.power_limit_mw);
  visit("sm_clock_mhz", device.sm_clock_mhz);
  visit("memory_clock_mhz", device.memory_clock_mhz);
  visit("fan_percent", device.fan_percent);
  visit("performance_state", device.performance_state);
  visit("throttle_reasons", device.throttle_reasons);
  visit("pcie_generation", device.pcie_generation);
  visit("pcie_width", device.pcie_width);
  visit("row_remap_failed", device.health.row_remap_failed);
  visit("row_remap_pending", device.health.row_remap_pending);
  visit("ecc_uncorrected", device.health.ecc_uncorrected);
  visit("retired_pages_pending", device.health.retired_pages_pending);
}

template <class ProcessType, class Visit>
void visit_process(ProcessType& process, Visit&& visit) {
  visit("pid", process.pid);
  visit("kind", process.kind);
  visit("used_bytes", process.used_bytes);
  visit("uid", process.uid);
  visit("start_ticks", process.start_ticks);
  visit("started_at_s", process.started_at_s);
  visit("user", process.user);
  visit("command", process.command);
  visit("container", process.container);
}

}  // namespace berth
