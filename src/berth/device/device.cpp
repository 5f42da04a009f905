#include "berth/device/device.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr std::array<std::string_view, 6> kStates{"ok",           "lost",  "needs_reset", "not_permitted",
                                                  "unresponsive", "failed"};
constexpr std::array<std::string_view, 4> kComputeModes{"shared", "exclusive_thread", "prohibited",
                                                        "exclusive_process"};
constexpr std::array<std::string_view, 2> kMemoryKinds{"dedicated", "unified"};
constexpr std::array<std::string_view, 3> kProcessKinds{"compute", "graphics", "compute_and_graphics"};

template <class Enum, std::size_t count>
std::optional<Enum> from_text(const std::array<std::string_view, count>& names, std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view to_text(DeviceState state) {
  return kStates[static_cast<std::size_t>(state)];
}
std::string_view to_text(ComputeMode mode) {
  return kComputeModes[static_cast<std::size_t>(mode)];
}
std::string_view to_text(MemoryKind kind) {
  return kMemoryKinds[static_cast<std::size_t>(kind)];
}
std::string_view to_text(ProcessKind kind) {
  return kProcessKinds[static_cast<std::size_t>(kind)];
}

bool read_value(std::string_view text, DeviceState& state) {
  state = from_text<DeviceState>(kStates, text).value_or(DeviceState::failed);
  return true;
}
bool read_value(std::string_view text, Reading<ComputeMode>& mode) {
  mode = from_text<ComputeMode>(kComputeModes, text);
  return true;
}
bool read_value(std::string_view text, MemoryKind& kind) {
  kind = from_text<MemoryKind>(kMemoryKinds, text).value_or(MemoryKind::dedicated);
  return true;
}
bool read_value(std::string_view text, ProcessKind& kind) {
  const auto known = from_text<ProcessKind>(kProcessKinds, text);
  kind = known.value_or(ProcessKind::compute);
  return known.has_value();
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
