#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>

#include "berth/base/error.h"
#include "berth/queue/acquisition_state.h"
#include "berth/queue/ticket_decision.h"

// Inside the gate, while others have to wait: what a request does, by the ledger as it is by then.
namespace berth {

/// How long a request may wait for others to leave the gate. `now`: the time since the request
/// began. nullopt: for ever.
std::optional<std::chrono::milliseconds> limit_at_gate(const Patience& patience,
                                                       std::chrono::milliseconds now);

namespace acquisition {

struct InGate {
  Ledger ledger;
  TicketId me;
  /// The rivals right before me that are stopped, up to the first that is not. This is read inside
  /// the gate, because a rival that goes on after an earlier look has its place back.
  std::set<TicketId> stopped;
  std::int64_t lease_changes = 0;  ///< as in NotedLeases
  Moment boot = 0;
  std::chrono::milliseconds now{0};  ///< since the request began, as acquisition::Event::now
};
struct Judgement {
  State state;
  Result<Decision> decision;
};
/// What to do with the ticket `me`. May be called again with another ledger: then the last answer
/// counts, and is the same as if it were the only one.
Judgement decide(State state, InGate gate);

}  // namespace acquisition
}  // namespace berth
