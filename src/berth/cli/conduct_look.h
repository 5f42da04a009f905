#pragma once

#include <string>
#include <vector>

#include "berth/cli/environment.h"
#include "berth/core/ledger.h"
#include "berth/lease/look.h"

namespace berth::cli {

/// A lease, and the machine at the moment in which its job was looked at.
struct ConductLook {
  Ticket lease;
  std::string name;  ///< of the lease, as tables show it
  leasing::World world;
};

/// Looks who is on the devices, for the lease that the words name as find_named_lease has it. Error: as
/// that; as Source::read; `failure` when the lease has just ended.
Result<ConductLook> look_at_conduct(Environment& environment, const std::vector<std::string>& words,
                                    source::SourceKind source);

}  // namespace berth::cli
