#pragma once

#include <string_view>

#include "berth/device/snapshot.h"

namespace berth {

/// The fields of the values in a snapshot under their names in a record (record_fields.h). Those of
/// a device are a table: device_readings.h.

template <class SnapshotType, class Visit>
constexpr void visit_snapshot(SnapshotType& snapshot, Visit&& visit) {
  visit("taken_at_ns", snapshot.taken_at_ns);
  visit("source", snapshot.source);
  visit("driver_version", snapshot.driver_version);
  visit("cuda_version", snapshot.cuda_version);
  visit("readings", snapshot.readings.bits);
  visit("stale_reason", snapshot.stale_reason);
}

template <class Mig, class Visit>
constexpr void visit_mig(Mig& mig, Visit&& visit) {
  visit("mig_parent_uuid", mig.parent_uuid);
  visit("mig_slot", mig.slot);
  visit("mig_gpu_instance", mig.gpu_instance);
  visit("mig_compute_instance", mig.compute_instance);
}

template <class ProcessType, class Visit>
constexpr void visit_process(ProcessType& process, Visit&& visit) {
  visit("pid", process.pid);
  visit("kind", process.kind);
  visit("used_bytes", process.used_bytes);
  visit("uid", process.uid);
  visit("start_ticks", process.start_ticks);
  visit("started_at_s", process.started_at_s);
  visit("ending", process.ending);
  visit("user", process.user);
  visit("command", process.command);
  visit("container", process.container);
}

template <class ProcessType, class Visit>
constexpr void visit_accounted(ProcessType& process, Visit&& visit) {
  visit("pid", process.pid);
  visit("runs", process.runs);
  visit("use_percent", process.use_percent);
  visit("peak_bytes", process.peak_bytes);
  visit("started_us", process.started_us);
  visit("lasted_ms", process.lasted_ms);
}

}  // namespace berth
