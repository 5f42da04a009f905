#pragma once

#include <string>
#include <vector>

#include "berth/command/environment.h"
#include "berth/lease/look.h"
#include "berth/verdict/ledger.h"

namespace berth::supervise {

/// A lease, and the machine at the moment of the look at its job.
struct ComplianceLook {
  Ticket lease;
  std::string name;  ///< of the lease, as tables show it
  leasing::World world;
};

/// Looks which processes are on the devices, for the lease that the words name (find_named_lease).
/// Error: as find_named_lease; as Source::read; `failure` if the lease has just ended.
Result<ComplianceLook> look_at_compliance(command::Environment& environment,
                                          const std::vector<std::string>& words, source::SourceKind source);

}  // namespace berth::supervise
