#pragma once

#include <string>
#include <vector>

#include "berth/api/berth.h"
#include "berth/render/text.h"

namespace berth::api {

/// For text that a host gets: of any width, without colours.
render::Style plain_style();

/// What was found about each device of the snapshot, with the reasons in words. The verdicts are those of
/// `judge`.
std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The same for verdicts whose reasons are in words already.
std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// The value for CUDA_VISIBLE_DEVICES.
std::string visible_devices(const std::vector<Device>& devices, const Snapshot& snapshot);

/// The devices with these UUIDs, in their order.
std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot);

/// With the seed of a random order filled in, where there is none.
Request settled(Request request);

}  // namespace berth::api
