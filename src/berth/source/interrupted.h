#pragma once

#include <optional>
#include <string_view>

#include "berth/core/snapshot.h"
#include "berth/source/reader.h"

namespace berth::source {

/// The answer when the driver has hung since `since` ("14:02") in `stage`: the devices of `partial` as they
/// are, the one it hangs at and those behind it as unresponsive, with their readings in `last` where there is
/// one; the snapshot is then marked stale. A hang that cost no device, only what is said about them, is a
/// note. Pure.
Snapshot finish_interrupted(Snapshot partial, const Stage& stage, const std::optional<Snapshot>& last,
                            std::string_view since);

/// `known`, and behind its devices those of another maker, whose own source has just told of them. Pure.
Snapshot beside(Snapshot known, Snapshot other);

}  // namespace berth::source
