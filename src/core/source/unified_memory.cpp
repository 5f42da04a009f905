#include "berth/source/unified_memory.h"

#include <algorithm>
#include <array>

#include "berth/source/proc/kernel_files.h"

namespace berth::source {

bool is_integrated(std::string_view device_name) {
  constexpr std::array<std::string_view, 6> kIntegrated{"GB10", "Orin", "Thor", "Xavier", "Jetson", "Tegra"};
  return std::ranges::any_of(kIntegrated, [&](std::string_view part) { return device_name.contains(part); });
}

void take_machine_memory(Device& device, const std::string& proc) {
  device.memory = {};
  device.memory.kind = MemoryKind::unified;
  if (const auto machine = machine_memory(proc)) {
    device.memory.total_bytes = machine->total_bytes;
    device.memory.free_bytes = machine->available_bytes;
  }
}

void take_use_from_processes(Device& device) {
  if (device.memory.kind != MemoryKind::unified || !device.processes) return;
  std::uint64_t sum = 0;
  for (const Process& process : *device.processes) sum += process.used_bytes.value_or(0);
  device.memory.used_bytes = sum;
}

}  // namespace berth::source
