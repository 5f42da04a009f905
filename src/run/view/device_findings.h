#pragma once

#include <vector>

#include "berth/request/job_mask.h"
#include "berth/verdict/site_policy.h"
#include "berth/view/doctor.h"

namespace berth::view {

/// The vendors of these devices, each once.
std::vector<Vendor> vendors_in(const Snapshot& snapshot);
/// That of the first device; where there is none, the first of all.
Vendor vendor_of_first(const Snapshot& snapshot);

/// What `berth doctor` finds in what the driver tells of the devices, by themselves and all
/// together. Pure. `masks`: the variables of the process that asks.
std::vector<Finding> device_findings(const Snapshot& snapshot, const SitePolicy& policy,
                                     const MaskVariables& masks);

}  // namespace berth::view
