#pragma once

#include <string>

#include "berth/machines/host.h"
#include "berth/view/server_metrics.h"

namespace berth::view {

/// What a hub knows, in Prometheus' text format: which agents answer, and totals. The agents
/// themselves report their devices. No metric has the same name as one of an agent's, so that a hub
/// that is also an agent can report both.
std::string hub_metrics(const Hosts& hosts, const PollCounts& polls);

}  // namespace berth::view
