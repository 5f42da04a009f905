#pragma once

#include "berth/lease/acquire.h"

namespace berth::supervise {

/// Leaves the locks that the lease has until it is used to processes of their own, one for each:
/// what was leased, and for whom, lives on as it is. A lock that cannot be left ends with this
/// process.
void keep_locks_until_used(const leasing::HeldLease& lease);

}  // namespace berth::supervise
