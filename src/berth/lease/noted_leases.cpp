#include "berth/lease/noted_leases.h"

#include <algorithm>
#include <string>

namespace berth::leasing {
namespace {

bool has_lost_a_lease(const std::string& uuid, const Ledger& before, const Ledger& now) {
  return std::ranges::any_of(leases_on(before, uuid),
                             [&](const Ticket* lease) { return find_ticket(now, lease->id) == nullptr; });
}

// Came after the driver was asked, and was killed.
bool has_a_new_dead_lease(const std::string& uuid, const Ledger& before, const Ledger& now) {
  return std::ranges::any_of(now.ended, [&](const Ticket& ended) {
    return std::ranges::find(ended.devices, uuid) != ended.devices.end() &&
           std::ranges::find(before.ended, ended.id, &Ticket::id) == before.ended.end();
  });
}

}  // namespace

Result<void> NotedLeases::note(store::LeaseStore& store, bool in_queue) {
  changes_ = in_queue ? 0 : store.lease_changes();
  BERTH_LET(auto books, store.look(store::Extent::leases));
  ledger_ = std::move(books.ledger);
  return {};
}

bool NotedLeases::may_have_ended_on(const Choice& choice, const Ledger& now, store::LeaseStore& store) const {
  // One that has come and gone in good order has left no other trace.
  if (changes_ != 0 && changes_ != store.lease_changes()) return true;
  return std::ranges::any_of(choice.uuids, [&](const std::string& uuid) {
    return has_lost_a_lease(uuid, ledger_, now) || has_a_new_dead_lease(uuid, ledger_, now);
  });
}

}  // namespace berth::leasing
