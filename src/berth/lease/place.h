#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/mask.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// Where a request is made: on the machine, or inside a lease.
struct Place {
  std::unique_ptr<store::LeaseStore> store;        ///< of the tickets of requests made here
  std::optional<std::vector<std::string>> within;  ///< inside a lease: its devices, the only ones that exist
  std::string lease_path;                          ///< inside a lease: the value of BERTH_LEASE
  bool believe_mask = true;                        ///< false: the masks came with a lease that is no more
  std::vector<std::string> warnings;

  /// The value of BERTH_LEASE for a lease that was granted here: "outer/inner".
  std::string path_of(TicketId lease) const;
};

/// The masks of this process's environment.
MaskVariables inherited_masks();

/// Opens the lease directory of this machine, and the one inside of the lease that BERTH_LEASE names, if that
/// is alive and ours. Error: the directory is not fit for use.
Result<Place> find_place(const store::Tell& tell);

}  // namespace berth::leasing
