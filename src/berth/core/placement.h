#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "berth/core/replay.h"

// What becomes of jobs that come to a lab of equal hosts, each with a line of its own, by how a host is found
// for each. A job runs on one host.
namespace berth {

enum class Placement {
  best_hosts,  ///< `berth run --anywhere`: in line on the best hosts at once, the first that grants it has it
  lab_line,    ///< the same with a store: on all hosts, in the order of the lab
  one_queue,   ///< one queue that knows of all hosts: what could be had at best in the order of coming
};
inline constexpr std::array kPlacements{Placement::best_hosts, Placement::lab_line, Placement::one_queue};

/// "best_hosts".
std::string_view to_text(Placement placement);

/// `hosts`: how many the devices of the workload are shared out among, as many to each; none of the jobs
/// wants more than one has. The order of the rules is that of coming. REQUIRES: the devices divide by it.
Replay replay_placed(Placement placement, const Workload& workload, std::size_t hosts, const LineRules& rules,
                     const Progress& tell = {});

}  // namespace berth
