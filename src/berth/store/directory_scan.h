#pragma once

#include <sys/types.h>

#include <vector>

#include "berth/store/lease_directory.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

/// A dead ticket that this user may remove.
struct Remains {
  TicketPhase phase = TicketPhase::waiting;
  TicketId id;
  uid_t owner = 0;
};

struct Scan {
  Ledger ledger;
  std::vector<Remains> remains;  ///< in a crowded directory only some of them
  TicketId
      newest;  ///< highest id in the name of any file, dead or alive, not counting those in the far future
};

/// Reads the queue and then the leases, in this order, so that a ticket that is granted meanwhile
/// is seen at least once.
Result<Scan> scan_directory(const LeaseDirectory& directory);

/// Reads leases/ only, which stays small however long the queue is.
Result<Scan> scan_leases(const LeaseDirectory& directory);

struct QueueNames {
  std::vector<TicketId> ids;  ///< in order; in a crowded queue mostly without those whose owner has ended
  TicketId newest;            ///< as in Scan, of the queue alone
};
/// The tickets that may wait, by name alone: ids in queue/ that are not in the far future.
Result<QueueNames> names_in_queue(const LeaseDirectory& directory);

/// Removes the file of a ticket of `owner`, and the owner's lease directory inside it.
void remove_ticket(const LeaseDirectory& directory, TicketPhase phase, TicketId id, uid_t owner);

}  // namespace berth::store
