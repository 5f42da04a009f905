#pragma once

#include <string_view>

#include "berth/lab_queue/model/agent_deeds.h"

namespace berth::lab_agent {

/// Takes a line of a client, which asks for something or answers. REQUIRES: the client has not
/// ended.
void hear(AgentDeeds& deeds, ClientId id, std::string_view line);

}  // namespace berth::lab_agent
