#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/lease/attribution.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/source/source.h"
#include "berth/store/lease_store.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/site_policy.h"
#include "berth/verdict/verdict.h"

namespace berth::leasing {

/// As LookOptions::requester: the process that looks.
inline constexpr std::uint32_t kThisProcess = 0;

/// The rules by which `look` looks at the machine.
struct LookOptions {
  SitePolicy policy;
  /// Where a request that waits finds what is excluded meanwhile; empty: nowhere.
  site::SiteFilePaths site_files{};
  MaskVariables masks;         ///< empty: none, or not to be obeyed
  std::optional<Asker> asker;  ///< the user to whom the limits of the policy apply; nullopt: no limits apply
  std::optional<std::vector<std::string>>
      within;  ///< only these devices exist: those of the lease that this process is inside of
  /// The process that asks: neither it nor what descends from it is an outsider, nor, inside a
  /// lease, what it descends from. nullopt: this machine is only looked at.
  std::optional<std::uint32_t> requester;
  /// Processes that do not count, nor does their memory, because they are about to get a lease.
  std::set<std::uint32_t> adopted;
  ReadingSet also;  ///< readings beyond those that judging the request needs
  store::Extent books = store::Extent::everything;
  bool locks = true;  ///< find out who has locked a device without a ticket
  bool gate = false;  ///< find out who keeps the gate shut
  Processes* processes = &system_processes();
};

/// The machine and the ledger at one instant.
struct World {
  Facts facts;
  Ledger ledger;
  std::set<std::uint32_t> assumed;  ///< processes that were attributed to a lease only because of their user
  std::string locks_left_out{};     ///< as in store::Books
  std::string halted_in_gate{};     ///< as in store::LeaseStore, if it was asked for
  std::vector<store::ForeignLock> foreign_locks;  ///< as in `facts`, with the user and process that took each
  std::set<TicketId> stopped;  ///< waiters that others skip; empty unless the whole ledger was read
  Moment looked_at = 0;
};

/// For which users each device is passed over, by UUID, for whoever looks at the machine. Asks for
/// the names of these users, which may take long. `now`: on the boot clock.
std::map<std::string, std::vector<PassedOverFor>> told_passed_over(const std::vector<UserRuns>& outcomes,
                                                                   const Ledger& ledger,
                                                                   const Snapshot& snapshot, Moment now);

/// The user of this process.
Asker asker_here();

/// What the options allow their asker at this time of the week. nullopt: they limit nothing.
std::optional<UserLimits> limits_now(const LookOptions& options);

/// One verdict for each device, for a listing: as `judge_each` for a whole device, but behind the
/// requests that wait.
Result<std::vector<Verdict>> judge_each_in_queue(const World& world);

/// Asks the source for what judging `request` needs, and reads the ledger. Holds and changes
/// nothing. Users have names if the whole ledger was read. Error: as Source::read; the lease
/// directory is not fit for use.
Result<World> look(source::Source& source, store::LeaseStore& store, const Request& request,
                   const LookOptions& options);

/// Reads what choosing needs (readings_to_choose) into the world. A topology that cannot be read is
/// no error: the choice then says so.
void read_to_choose(ReadingSet needed, source::Source& source, World& world);

/// Reads the topology into the world, but only if choosing depends on it, because some machines
/// take seconds to tell it. A topology that cannot be read is no error: the choice then says so.
Result<void> read_topology_for(const Request& request, source::Source& source, World& world);

/// Leases that have ended and whose devices still have memory in use that no living process on them
/// explains. Their files are kept, because nothing else tells why the memory is in use.
std::vector<TicketId> draining_leases(const Facts& facts, const Ledger& ledger, Processes& processes);

/// Whether the ticket's process, or the process that waits on its behalf, is stopped (Ctrl-Z,
/// SIGSTOP).
bool is_stopped(const Ticket& ticket, Processes& processes);

/// The waiting tickets that are stopped: others skip them.
std::set<TicketId> stopped_waiters(const Ledger& ledger, Processes& processes);

/// Fills in the names of the tickets' users. May ask a directory service.
void name_users(Ledger& ledger);

/// The options of a probe, as the environment sets them: where the probe keeps what it learns, and
/// its deadline.
source::ProbeOptions probe_options();

}  // namespace berth::leasing
