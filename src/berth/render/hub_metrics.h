#pragma once

#include <string>

#include "berth/core/host.h"
#include "berth/render/server_metrics.h"

namespace berth::render {

/// What a hub knows in Prometheus' text format: who answers, and totals. The devices are for their agents to
/// tell. No name is one of an agent's, so that a hub which is an agent too can tell both.
std::string hub_metrics(const Hosts& hosts, const PollCounts& polls);

}  // namespace berth::render
