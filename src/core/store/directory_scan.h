#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "berth/store/lease_directory.h"
#include "berth/sys/file.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

/// A dead ticket that this user may remove, or a file in the place of one.
struct Remains {
  TicketPhase phase = TicketPhase::waiting;
  TicketId id;
  sys::FileIdentity file{};
  uid_t owner = 0;
};

/// What the names of files say about the id that comes next, whether or not a ticket is alive.
struct IdsTaken {
  /// The highest id that is not ahead of the clock, or is that of a live ticket. A process with
  /// another boot clock may have such a ticket. Anybody can give a file a name that is ahead, so
  /// the name alone moves no other id. Not counting those in the far future.
  TicketId newest;
  std::vector<TicketId> ahead;  ///< all that are ahead of the clock, in order
};
/// The id of a ticket that joins at `now_ns` of the boot clock: higher than `newest`, and one that
/// no file has.
TicketId next_id(const IdsTaken& queue, const IdsTaken& leases, std::uint64_t now_ns);

struct Scan {
  Ledger ledger;
  std::vector<Remains> remains;  ///< in a crowded directory only some of them
  IdsTaken ids;
};

/// Reads the queue and then the leases, in this order, so that a ticket that is granted meanwhile
/// is seen at least once.
Result<Scan> scan_directory(const LeaseDirectory& directory);

/// Reads leases/ only, which stays small however long the queue is.
Result<Scan> scan_leases(const LeaseDirectory& directory);

struct QueueNames {
  std::vector<TicketId> ids;  ///< in order; in a crowded queue mostly without those whose owner has ended
  IdsTaken taken;             ///< in the queue alone
};
/// The tickets that may wait, by name alone: ids in queue/ that are not in the far future.
Result<QueueNames> names_in_queue(const LeaseDirectory& directory);

/// Removes the file of a ticket of `owner`, and the owner's lease directory inside it.
void remove_ticket(const LeaseDirectory& directory, TicketPhase phase, TicketId id, uid_t owner);
/// The same, unless another file has that name by now: a ticket may have become a lease over a file
/// that somebody had put in its place.
void remove_remains(const LeaseDirectory& directory, const Remains& remains);

}  // namespace berth::store
