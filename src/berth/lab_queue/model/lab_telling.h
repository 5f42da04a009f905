#pragma once

#include <string>

#include "berth/lab_queue/model/agent_deeds.h"

// What clients are told: requests, of their way through the queue; people who look, of all of it.
namespace berth::lab_agent {

/// Tells each request which hosts it may join, or which limit holds it back, and its position.
void tell_openings(AgentDeeds& deeds);
/// The request keeps its entry and lets its hosts go, so that no host holds GPUs for it.
void hold_back(AgentDeeds& deeds, ClientId id, QueueEntry& entry, const std::string& why);

/// That the store does not answer, which each request is told once.
void tell_silence(AgentDeeds& deeds, ClientId id, QueueEntry& entry);
/// That it answers again, to those who were told otherwise.
void tell_return(AgentDeeds& deeds);

/// Tells people who look, and requests whose limits are not known.
void report(AgentDeeds& deeds);
/// When the queue is shown to people who did not ask for it.
Moment next_show(const Board& board, Moment now);

}  // namespace berth::lab_agent
