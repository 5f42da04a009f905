#pragma once

#include <string>
#include <vector>

#include "berth/api/berth.h"
#include "berth/base/error.h"

namespace berth::api {

/// The berth program that serves this host: $BERTH_PROGRAM, else beside this library or executable,
/// else `berth` on PATH. Error: `failure` if there is none; the message says where it was looked
/// for, and what to do.
Result<std::string> find_program();

/// What was found about each device of the snapshot, with the reasons in words. `verdicts`: as
/// `judge` gives them.
std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The same for verdicts whose reasons are in words already.
std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The devices with these UUIDs, in their order.
std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot);

}  // namespace berth::api
