#pragma once

#include <optional>
#include <string_view>

#include "berth/device/snapshot.h"
#include "berth/source/reader.h"

namespace berth::source {

/// The answer if the driver has hung since `since` ("14:02") in `stage`. It has the devices of
/// `partial` as they are. The device at which the driver hangs and those after it are unresponsive,
/// with their readings from `last`, if there is one; the snapshot is then marked stale. If the hang
/// cost no device, but only something about the devices, a note says so. Pure.
Snapshot finish_interrupted(Snapshot partial, const Stage& stage, const std::optional<Snapshot>& last,
                            std::string_view since);

/// `known`, followed by the devices of another maker, which its own source has just read. Pure.
Snapshot beside(Snapshot known, Snapshot other);

}  // namespace berth::source
