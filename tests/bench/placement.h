#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "berth/simulate/replay.h"

// Simulates jobs in a lab of equal hosts, each with a queue of its own. The ways to find a host for
// each job differ. A job runs on one host.
namespace berth {

enum class Placement {
  best_hosts,  ///< `berth run --anywhere`: waits on the best hosts at once; the first that grants it gets it
  lab_line,    ///< the same with a store: waits on all hosts, in the order of the lab
  one_queue,   ///< one queue that knows all hosts: the best possible in the order of coming
};
inline constexpr std::array kPlacements{Placement::best_hosts, Placement::lab_line, Placement::one_queue};

/// "best_hosts".
std::string_view to_text(Placement placement);

/// `hosts`: the number of hosts. Each has the same share of the workload's devices, and no job
/// wants more devices than one host has. The queues keep the order of coming. REQUIRES: the devices
/// divide evenly.
Replay replay_placed(Placement placement, const Workload& workload, std::size_t hosts,
                     const QueueRules& rules, const Progress& tell = {});

}  // namespace berth
