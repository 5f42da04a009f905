#include "berth/core/device.h"

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

std::optional<DeviceState> device_state_from_text(std::string_view text) {
  return from_text<DeviceState>(kStates, text);
}
std::optional<ComputeMode> compute_mode_from_text(std::string_view text) {
  return from_text<ComputeMode>(kComputeModes, text);
}
std::optional<ProcessKind> process_kind_from_text(std::string_view text) {
  return from_text<ProcessKind>(kProcessKinds, text);
}

std::optional<MemoryKind> memory_kind_from_text(std::string_view text) {
  return from_text<MemoryKind>(kMemoryKinds, text);
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
