#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/mask.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// The machine, or the inside of a lease.
struct Level {
  std::unique_ptr<store::LeaseStore> store;        ///< of the tickets of requests made here
  std::optional<std::vector<std::string>> within;  ///< inside a lease: its devices, the only ones that exist
  std::string lease_path;                          ///< inside a lease: the value of BERTH_LEASE
};

/// Where a request is made.
struct Place : Level {
  std::vector<Level> around;     ///< inside a lease: what is further out, the machine first
  MaskVariables masks;           ///< those that requests here obey, without such as came with a lease
  std::optional<Ticket> beside;  ///< the claim that this process is in, and that was left aside
  std::vector<std::string> warnings;

  /// The value of BERTH_LEASE for a lease that was granted here: "outer/inner".
  std::string path_of(TicketId lease) const;
  /// The outermost lease that this place is inside of. nullopt: it is the machine.
  std::optional<TicketId> outermost() const;
  /// The file of the ticket of a lease that was granted here. It goes with the lease.
  std::string ticket_of(TicketId lease) const;
};

/// The machine around this place, for who only looks: nothing is hidden from him.
Place machine_around(Place place);

/// What a claim puts before the name of a mask that was there, to keep its value under.
inline constexpr std::string_view kOuterMask = "BERTH_OUTER_";

/// The masks of this process's environment; `prefix`: what stands before their names there.
MaskVariables inherited_masks(std::string_view prefix = "");

/// Whether a process that is in a claim asks for a part of what that has, or for something else.
enum class InClaim { inside, beside };

/// Opens the lease directory of this machine, and the one inside of the lease that BERTH_LEASE names, if that
/// is alive and ours; without BERTH_LEASE, of the lease for the job of Slurm that SLURM_JOB_ID names. Error:
/// the directory is not fit for use.
Result<Place> find_place(const store::Tell& tell, InClaim in_claim = InClaim::inside);

}  // namespace berth::leasing
