#pragma once

#include <cstdint>

#include "berth/core/ledger.h"
#include "berth/core/select.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// The leases as they were before the driver was asked, which may take seconds. On a device whose lease has
/// ended since then there may be memory in use that the driver did not tell of.
class NotedLeases {
 public:
  /// As of now. A device that is a candidate of ours goes to nobody else once we are in the queue, so there
  /// it is enough to know which leases end.
  Result<void> note(store::LeaseStore& store, bool in_queue);

  /// Whether a lease on a device of the choice has ended since `note`. May be true also when one of another
  /// device has come or gone. `now` is the ledger inside the gate. REQUIRES: the gate is held.
  bool may_have_ended_on(const Choice& choice, const Ledger& now, store::LeaseStore& store) const;

 private:
  Ledger ledger_;
  std::int64_t changes_ = 0;  ///< 0: not to be compared
};

}  // namespace berth::leasing
