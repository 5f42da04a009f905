#include "berth/device/snapshot.h"

#include <algorithm>

namespace berth {

ReadingSet readings_for_listing() {
  return ReadingKind::name | ReadingKind::memory | ReadingKind::processes | ReadingKind::process_details |
         ReadingKind::utilization | ReadingKind::power | ReadingKind::temperature | ReadingKind::clocks |
         ReadingKind::fan | ReadingKind::compute_mode | ReadingKind::mig | ReadingKind::health |
         ReadingKind::capability | ReadingKind::pci | ReadingKind::modes | ReadingKind::driver |
         ReadingKind::host | ReadingKind::xid;
}

const Device* find_device(const Snapshot& snapshot, std::string_view uuid) {
  const auto found = std::ranges::find(snapshot.devices, uuid, &Device::uuid);
  return found == snapshot.devices.end() ? nullptr : &*found;
}

std::string device_labels(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  std::string labels;
  for (const std::string& uuid : uuids) {
    const Device* device = find_device(snapshot, uuid);
    labels += (labels.empty() ? "" : ",") + (device == nullptr ? "?" : label(*device));
  }
  return labels;
}

}  // namespace berth
