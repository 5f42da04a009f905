#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/core/verdict.h"
#include "berth/lease/processes.h"
#include "berth/source/source.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// By which rules the machine is looked at.
struct LookOptions {
  SitePolicy policy;
  MaskVariables masks;         ///< empty: none, or not to be obeyed
  std::optional<Asker> asker;  ///< whom the limits of the policy are for; nullopt: none hold
  std::optional<std::vector<std::string>>
      within;  ///< only these devices exist: those of the lease that we are inside of
  /// Processes that count as if they were not there, nor their memory: they are about to get a lease.
  std::set<std::uint32_t> adopted;
  ReadingSet also;  ///< readings beyond those that judging the request needs
  store::Extent books = store::Extent::everything;
  Processes* processes = &system_processes();
};

/// The machine and the books at one instant.
struct World {
  Facts facts;
  Ledger ledger;
  std::set<std::uint32_t> assumed;  ///< processes that were given to a lease on the strength of their user
  std::vector<store::ForeignLock> foreign_locks;  ///< as in facts, with who took them
  std::set<TicketId> stopped;  ///< who waits and is passed over; empty unless the books were read whole
  Moment looked_at = 0;
};

/// The user of this process.
Asker asker_here();

/// What the options allow whom they are for at this time of the week. nullopt: they limit nothing.
std::optional<UserLimits> limits_now(const LookOptions& options);

/// One verdict a device, as `judge_each` for a whole one, but behind those who wait: what a listing says of
/// it.
Result<std::vector<Verdict>> judge_each_in_line(const World& world);

/// Asks the source and reads the books, with what judging `request` needs. Holds and changes nothing. Users
/// have names if the books were read whole. Error: as Source::read; the lease directory is not fit for use.
Result<World> look(source::Source& source, store::LeaseStore& store, const Request& request,
                   const LookOptions& options);

/// Reads what choosing needs (readings_to_choose) into the world. A topology that cannot be had is no error:
/// the choice then says so.
void read_to_choose(ReadingSet needed, source::Source& source, World& world);

/// Reads the topology into the world if choosing depends on it: some machines take seconds to tell it. A
/// topology that cannot be had is no error: the choice then says so.
Result<void> read_topology_for(const Request& request, source::Source& source, World& world);

/// Leases that ended and whose devices still have memory in use that no living process on them explains.
/// Their files are kept, as the only trace of why.
std::vector<TicketId> draining_leases(const Facts& facts, const Ledger& ledger, Processes& processes);

/// Whether the ticket's process is stopped (Ctrl-Z, SIGSTOP), or the one that waits for it.
bool is_stopped(const Ticket& ticket, Processes& processes);

/// The waiting tickets that are stopped: others pass them over.
std::set<TicketId> stopped_waiters(const Ledger& ledger, Processes& processes);

/// Fills in the names of the tickets' users. May ask a directory service.
void name_users(Ledger& ledger);

}  // namespace berth::leasing
