#include "berth/device/device.h"

namespace berth {

bool read_value(std::string_view text, DeviceState& state) {
  state = from_word<DeviceState>(text).value_or(DeviceState::failed);
  return true;
}
bool read_value(std::string_view text, Reading<ComputeMode>& mode) {
  mode = from_word<ComputeMode>(text);
  return true;
}
bool read_value(std::string_view text, MemoryKind& kind) {
  kind = from_word<MemoryKind>(text).value_or(MemoryKind::dedicated);
  return true;
}

bool is_split(const Device& device) {
  return !device.mig && device.mig_enabled.value_or(false);
}

std::string label(const Device& device) {
  std::string text = std::to_string(device.index);
  if (device.mig) text += ':' + std::to_string(device.mig->slot);
  return text;
}

}  // namespace berth
