#include "berth/verdict/noted_leases.h"

#include <algorithm>
#include <set>
#include <string>

namespace berth {
namespace {

bool has_lost_a_lease(const std::string& uuid, const Ledger& before, const Ledger& now) {
  return std::ranges::any_of(leases_on(before, uuid), [&](const Ticket* lease) {
    return find_ticket(now, lease->id, TicketPhase::granted) == nullptr;
  });
}

// Came after the driver was asked, and was killed.
bool has_a_new_dead_lease(const std::string& uuid, const Ledger& before, const Ledger& now) {
  return std::ranges::any_of(now.ended, [&](const Ticket& ended) {
    return std::ranges::find(ended.devices, uuid) != ended.devices.end() &&
           std::ranges::find(before.ended, ended.id, &Ticket::id) == before.ended.end();
  });
}

std::set<TicketId> lease_ids(const Ledger& ledger) {
  std::set<TicketId> ids;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted) ids.insert(ticket.id);
  }
  return ids;
}

}  // namespace

bool may_have_ended_on(const Choice& choice, const NotedLeases& before, const NotedLeases& now) {
  if (before.changes != 0 && before.changes != now.changes) return true;
  return std::ranges::any_of(choice.uuids, [&](const std::string& uuid) {
    return has_lost_a_lease(uuid, before.ledger, now.ledger) ||
           has_a_new_dead_lease(uuid, before.ledger, now.ledger);
  });
}

bool same_leases(const Ledger& a, const Ledger& b) {
  return lease_ids(a) == lease_ids(b);
}

}  // namespace berth
