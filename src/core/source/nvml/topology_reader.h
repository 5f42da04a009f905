#pragma once

#include <string>
#include <vector>

#include "berth/device/snapshot.h"
#include "berth/source/nvml/library.h"

namespace berth::nvml {

struct TopologyMember {
  std::string uuid;
  Handle handle;
};

/// How the GPUs are joined. Slow: some drivers take more than half a second a pair. What a pair
/// does not tell counts as farthest apart.
Topology read_topology(Library& library, const std::vector<TopologyMember>& members);

}  // namespace berth::nvml
