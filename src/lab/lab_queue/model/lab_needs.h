#pragma once

#include <cstdint>
#include <optional>

#include "berth/lab_queue/model/agent_deeds.h"

// What a request needs, so that the store has it as it should be and the request knows: its entry,
// its one start, and the end of a start that it has lost.
namespace berth::lab_agent {

/// The store is to be changed.
struct Writes {
  lab_queue::LabChange change;
  Settles::Purpose purpose{};
};

/// The entry of a request. `order`: of the ticket that is there; 0: there is none.
lab_queue::LabChange put_ticket(const QueueEntry& entry, std::uint64_t order);
/// The change that the request needs. nullopt: it needs none now; it may have been told yes, held
/// back, or turned away instead. REQUIRES: it has an entry.
std::optional<Writes> settle(AgentDeeds& deeds, ClientId id);
/// After this was made for it. REQUIRES: it has an entry.
void has_settled(AgentDeeds& deeds, ClientId id, const Settles::Purpose& made);

}  // namespace berth::lab_agent
