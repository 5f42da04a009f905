#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/lab_queue/model/agent_deeds.h"

// What the limits of a user over the lab say of a request at this hour.
namespace berth::lab_agent {

/// Says in the ticket of this client what its user may have, and ends a request that may never
/// start.
void limit(AgentDeeds& deeds, ClientId id);

/// Why its user may not start it now. `has`: what the users have of the lab. `taken`: the same for
/// this user, with what the user's earlier requests ask for.
std::optional<std::string> why_over(const QueueEntry& entry, const Settings& settings, const Given& given,
                                    const GpusByUser& has, std::uint64_t taken);

}  // namespace berth::lab_agent
