#pragma once

#include <string>
#include <vector>

#include "berth/api/berth.h"

namespace berth::api {

/// What was found about each device of the snapshot, with the reasons in words. `verdicts`: as
/// `judge` gives them.
std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The same for verdicts whose reasons are in words already.
std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The devices with these UUIDs, in their order.
std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot);

}  // namespace berth::api
