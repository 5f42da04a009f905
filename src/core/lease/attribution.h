#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "berth/device/snapshot.h"
#include "berth/lease/processes.h"
#include "berth/store/lease_store.h"
#include "berth/verdict/ledger.h"

namespace berth::leasing {

/// Which process on a device belongs to which lease.
struct Attribution {
  std::multimap<std::uint32_t, TicketId> leases;
  std::set<std::uint32_t> assumed;  ///< of those, the ones that are attributed only because the lease's owner
                                    ///< runs them on a device of the lease
};

/// A process belongs to a lease for one of these reasons, the first that holds: it descends from
/// the holder or from the process that the lease is kept for; it has the lease's ticket open for
/// writing; its environment names the lease (BERTH_LEASE, or SLURM_JOB_ID if the lease is for that
/// job of Slurm) and its user is the lease's. The pids in a ticket count only for processes of the
/// ticket's owner. A process that has the ticket open only for reading, as everybody may, does not
/// belong to the lease. If another user's /proc may not be read, a process of the lease's owner on
/// a device of that lease is assumed to belong to it. If one shell or program has several leases,
/// what it runs belongs to each of them.
Attribution attribute(const Snapshot& snapshot, const Ledger& ledger, store::LeaseStore& store,
                      Processes& processes);

/// Whether a value of BERTH_LEASE such as "outer/inner" names this lease: as the innermost one, or
/// as one around it.
bool names_lease(std::string_view value, TicketId lease);

}  // namespace berth::leasing
