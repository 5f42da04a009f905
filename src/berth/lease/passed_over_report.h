#pragma once

#include <map>
#include <string>
#include <vector>

#include "berth/verdict/passed_over_devices.h"
#include "berth/view/doctor.h"

namespace berth::leasing {

/// For which users each device is passed over, by UUID, for whoever looks at the machine. Asks for
/// the names of these users, which may take long. `now`: on the boot clock.
std::map<std::string, std::vector<PassedOverFor>> told_passed_over(const std::vector<UserRuns>& outcomes,
                                                                   const Ledger& ledger,
                                                                   const Snapshot& snapshot, Moment now);

/// The devices that requests of some user pass over. Changes nothing.
std::vector<view::Finding> examine_passed_over(const Snapshot& snapshot);

}  // namespace berth::leasing
