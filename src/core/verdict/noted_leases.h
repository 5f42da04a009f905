#pragma once

#include <cstdint>

#include "berth/verdict/choice.h"
#include "berth/verdict/ledger.h"

namespace berth {

/// The leases as they were before the driver was asked, which may take seconds. If the lease of a
/// device has ended since then, memory of the device may be in use that the driver did not tell of.
///
/// Once we are in the queue, no device that is a candidate of ours goes to anybody else. Then it is
/// enough to know which leases end. Before that, a lease that was granted and released in good
/// order leaves no other trace than `changes`.
struct NotedLeases {
  Ledger ledger;
  /// Changes whenever a lease is added or the file of a lease is removed. 0: not to be compared.
  std::int64_t changes = 0;
};

/// Whether a lease on a device of the choice has ended between the two times. May be true also if a
/// lease on another device was added or removed. REQUIRES: `now` was read inside the gate.
bool may_have_ended_on(const Choice& choice, const NotedLeases& before, const NotedLeases& now);

/// Whether both have the same leases.
bool same_leases(const Ledger& a, const Ledger& b);

}  // namespace berth
