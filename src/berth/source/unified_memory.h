#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/core/device.h"

namespace berth::source {

/// Parts whose device memory is the machine's. Only these may be given the machine's numbers: on another a
/// missing answer is a fault, and would look like a healthy device with much memory.
bool is_integrated(std::string_view device_name);

/// Makes the device's memory the machine's.
void take_machine_memory(Device& device, const std::string& proc = "/proc");

/// What the machine's memory in use says nothing about, the device's processes do.
void take_use_from_processes(Device& device);

}  // namespace berth::source
