#pragma once

#include <string>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/lease/place.h"

namespace berth::cli {

/// A live lease that the user has named, and the place whose books have it.
struct NamedLease {
  leasing::Place place;
  Ticket ticket;
};

/// The lease that the one word means (its id or the last digits of it, or a value of BERTH_LEASE); without a
/// word the lease that this process is inside of. Looked for where a request would be made now, then further
/// out. Error: `usage`; `failure` when there is no such lease, or it still waits.
Result<NamedLease> find_named_lease(const std::vector<std::string>& words);

/// The request of the queue that the one word means. Error: `usage`; `failure` when there is none, or it has
/// its GPUs by now.
Result<NamedLease> find_named_request(const std::vector<std::string>& words);

}  // namespace berth::cli
