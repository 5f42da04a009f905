#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"
#include "berth/store/lease_store.h"
#include "berth/verdict/ledger.h"

namespace berth::leasing {

/// The machine, or the inside of a lease.
struct Level {
  std::unique_ptr<store::LeaseStore> store;        ///< with the tickets of requests made here
  std::optional<std::vector<std::string>> within;  ///< inside a lease: its devices, the only ones that exist
  std::string lease_path;                          ///< inside a lease: the value of BERTH_LEASE
};

/// Where a request is made.
struct Domain : Level {
  std::vector<Level> around;     ///< inside a lease: the levels around it, the machine first
  MaskVariables masks;           ///< the masks that requests here obey, without those that a lease has set
  std::optional<Ticket> beside;  ///< the claim that this process is in, if InClaim::beside left it aside
  std::vector<std::string> warnings;
  /// The lease directory is in a /tmp that not all on this machine see. So nothing is granted here,
  /// except inside a lease.
  bool is_unseen = false;

  /// The value of BERTH_LEASE for a lease that was granted here: "outer/inner".
  std::string path_of(TicketId lease) const;
  /// The outermost lease that this place is inside of. nullopt: it is the machine.
  std::optional<TicketId> outermost() const;
  /// The file of the ticket of a lease that was granted here. The file is removed with the lease.
  std::string ticket_of(TicketId lease) const;
};

/// The machine around this place, for a command that only looks: it sees all devices and all
/// leases.
Domain machine_around(Domain domain);

/// The prefix of the variable in which a claim keeps the value of a mask that was set before.
inline constexpr std::string_view kOuterMask = "BERTH_OUTER_";

/// The masks in this process's environment. `prefix`: what precedes their names there.
MaskVariables inherited_masks(std::string_view prefix = "");

/// Whether a process in a claim asks for devices of the claim (inside), or for others (beside).
enum class InClaim { inside, beside };

/// Opens the lease directory of this machine. If BERTH_LEASE names a lease that is alive and ours,
/// opens the directory inside that lease too; without BERTH_LEASE, that inside the lease of the job
/// of Slurm that SLURM_JOB_ID names. Error: the directory is not fit for use.
Result<Domain> find_domain(const store::Warn& warn, InClaim in_claim = InClaim::inside);

}  // namespace berth::leasing
