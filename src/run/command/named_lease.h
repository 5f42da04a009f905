#pragma once

#include <string>
#include <vector>

#include "berth/lease/domain.h"
#include "berth/verdict/ledger.h"

namespace berth::command {

/// A live lease that the user has named, and the place whose ledger has it.
struct NamedLease {
  leasing::Domain domain;
  Ticket ticket;
  std::string name;  ///< its short name
};

/// The lease that the word means: its id, or the last digits of it, or a value of BERTH_LEASE.
/// Without a word, the lease that this process is inside of. Looks first where a request would be
/// made now, then in the places around it. Error: `usage`; `failure` if there is no such lease, or
/// if the ticket still waits.
Result<NamedLease> find_named_lease(const std::vector<std::string>& words);

/// The request in the queue that the word means. Error: `usage`; `failure` if there is none, or if
/// it has its GPUs by now.
Result<NamedLease> find_named_request(const std::vector<std::string>& words);

}  // namespace berth::command
