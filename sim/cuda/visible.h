#pragma once

#include <string>
#include <vector>

#include "machine/scenario.h"

namespace berth::sim {

/// What a CUDA ordinal stands for.
struct Visible {
  std::string uuid;  // of the device, or of the instance's parent
  int slot = -1;
};

/// The ordinals of a process with these variables (nullptr: not set). The list is cut at the first
/// entry that names nothing; an entry that comes twice leaves no device at all; of MIG instances
/// only the first counts.
std::vector<Visible> visible_devices(const Scenario& scenario, const char* visible, const char* order);

}  // namespace berth::sim
