#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "berth/core/ledger.h"
#include "berth/core/snapshot.h"
#include "berth/lease/processes.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// Which process on a device belongs to which lease.
struct Attribution {
  std::multimap<std::uint32_t, TicketId> leases;
  std::set<std::uint32_t> assumed;  ///< of those: only because the lease's owner runs them on a device of it
};

/// A process belongs to a lease because it descends from the holder or from the process that the lease is
/// kept for, else because it shares the lease's ticket, else because BERTH_LEASE in its environment says so
/// (or SLURM_JOB_ID, of a lease that is for that job of Slurm) and its user is the lease's. What a ticket
/// says of pids counts for its owner's processes only, and having the ticket open to read, as everybody may,
/// for nothing. Where another user's /proc may not be read, a process of the lease's owner on a device of
/// that lease is assumed to be its. One shell or program may have several leases, and what it runs then
/// belongs to each.
Attribution attribute(const Snapshot& snapshot, const Ledger& ledger, store::LeaseStore& store,
                      Processes& processes);

/// "outer/inner": whether the value of BERTH_LEASE names this lease, itself or as one that it is inside of.
bool names_lease(std::string_view value, TicketId lease);

}  // namespace berth::leasing
