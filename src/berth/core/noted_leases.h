#pragma once

#include <cstdint>

#include "berth/core/ledger.h"
#include "berth/core/select.h"

namespace berth {

/// The leases as they were before the driver was asked, which may take seconds. On a device whose lease has
/// ended since then there may be memory in use that the driver did not tell of.
///
/// A device that is a candidate of ours goes to nobody else once we are in the queue, so there it is enough
/// to know which leases end. Before, one that has come and gone in good order leaves no other trace than
/// `changes`.
struct NotedLeases {
  Ledger ledger;
  /// Another number whenever a lease has come or the name of one has gone. 0: not to be compared.
  std::int64_t changes = 0;
};

/// Whether a lease on a device of the choice has ended between two times. May be true also when one of
/// another device has come or gone. REQUIRES: `now` is of inside the gate.
bool may_have_ended_on(const Choice& choice, const NotedLeases& before, const NotedLeases& now);

/// Whether both have the same leases.
bool same_leases(const Ledger& a, const Ledger& b);

}  // namespace berth
