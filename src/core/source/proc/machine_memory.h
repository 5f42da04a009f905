#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace berth::source {

struct MachineMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< without swapping
};

/// From PROC/meminfo. nullopt: not readable.
std::optional<MachineMemory> machine_memory(const std::string& proc = "/proc");

}  // namespace berth::source
