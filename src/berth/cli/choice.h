#pragma once

#include <string>

#include "berth/core/select.h"
#include "berth/core/snapshot.h"

namespace berth::cli {

/// The value for CUDA_VISIBLE_DEVICES: indices in PCI bus order, or UUIDs when asked for and where an index
/// would name another device to CUDA, or none.
std::string visible_devices(const Choice& choice, const Snapshot& snapshot, bool uuids);

/// Whether that value has indices in it.
bool counts_by_index(const Choice& choice, const Snapshot& snapshot, bool uuids);

}  // namespace berth::cli
