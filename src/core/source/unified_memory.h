#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/device/device.h"

namespace berth::source {

/// The compute capability as a snapshot has it. Absent for numbers that no card has, because a
/// driver may invent them.
inline Reading<int> capability_of(int major, int minor) {
  constexpr int kMostMajor = 99;
  constexpr int kMostMinor = 9;
  const bool is_one = major >= 0 && major <= kMostMajor && minor >= 0 && minor <= kMostMinor;
  return is_one ? Reading<int>(10 * major + minor) : std::nullopt;
}

/// GPUs whose device memory is the machine's memory. Only these may get the machine's numbers. On
/// another GPU, a missing answer is a fault, and must not look like a healthy device with much
/// memory.
bool is_integrated(std::string_view device_name);

/// Makes the device's memory the machine's.
void take_machine_memory(Device& device, const std::string& proc = "/proc");

/// Sets the used memory to that of the device's processes, because the machine's used memory says
/// nothing about the device.
void take_use_from_processes(Device& device);

}  // namespace berth::source
