// What is on the devices right now: the scenario's processes that still live, and what processes
// hold through the simulated libcuda.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/scenario.h"

namespace berth::sim {

struct LiveProcess {
  std::int64_t pid = 0;
  unsigned kinds = kCompute;
  std::optional<std::uint64_t> used_bytes;
  int slot = -1;
  std::string name;  // "" unless the scenario says it
  unsigned sm_percent = 0;
};

struct Load {
  std::vector<LiveProcess> processes;  // by pid
  std::uint64_t used_bytes = 0;        // without the driver's reserve
  std::uint64_t slot_used_bytes[7] = {};
};

/// Where the state of a scenario is kept, and what a reader must know to judge it.
struct Place {
  std::string state_directory;  // FILE.d
  std::int64_t scenario_mtime_ns = 0;
};

Load load_of(const Scenario& scenario, unsigned device, const Place& place);

}  // namespace berth::sim
