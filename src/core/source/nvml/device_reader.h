#pragma once

#include <string>
#include <vector>

#include "berth/device/device.h"
#include "berth/source/nvml/library.h"

namespace berth::nvml {

/// One GPU with the readings asked for, followed by its MIG instances. Never fails: a device that
/// does not answer is a row with its state, and is not asked any further. `only`: as in
/// ReadRequest.
std::vector<Device> read_device(Library& library, unsigned index, ReadingSet readings,
                                const std::vector<std::string>& only);

}  // namespace berth::nvml
