#pragma once

#include "berth/command/field_options.h"
#include "berth/lease/session.h"
#include "berth/request/job_mask.h"

namespace berth::supervise {

/// The variables of Berth in the environment of a job in this lease, which was asked for with these
/// options.
JobMask lease_environment(const leasing::Domain& domain, const leasing::HeldLease& lease,
                          const command::RequestOptions& asked);

}  // namespace berth::supervise
