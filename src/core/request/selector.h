#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/snapshot.h"

namespace berth {

/// The places in snapshot.devices of the devices that `selector` names, ascending; empty if it
/// names none. A selector is an index ("3"), a MIG instance ("3:1": slot 1 of GPU 3), a UUID or the
/// beginning of one ("GPU-5d0b", also "MIG-GPU-UUID/GI/CI"), or a PCI bus id ("0000:07:00.0",
/// "07:00.0"). A GPU that is split by MIG means its instances. A beginning that fits several
/// devices names them all.
std::vector<std::size_t> devices_named(std::string_view selector, const Snapshot& snapshot);

/// The same for a selector that a user typed. Error: `usage`, with the devices that there are, if
/// it names none or several.
Result<std::vector<std::size_t>> resolve_selector(std::string_view selector, const Snapshot& snapshot);

/// The UUIDs of the devices that the selectors name together. Error: as resolve_selector.
Result<std::vector<std::string>> uuids_named(const std::vector<std::string>& selectors,
                                             const Snapshot& snapshot);

/// These selectors with the UUID of the device in the place of each index (3) and MIG instance
/// (3:1), to be kept for later: an index means another device once a card before it is gone. A
/// split GPU is named itself, and not its instances. What names no device, or one without a UUID,
/// stays as it is.
std::vector<std::string> as_uuids(const std::vector<std::string>& selectors, const Snapshot& snapshot);

/// True if `selector` is an index or a MIG instance by its index, so what it means depends on which
/// cards are there.
bool counts_devices(std::string_view selector);

/// "0-3, 5, 6:1": the labels of these places.
std::string labels_of(const std::vector<std::size_t>& indices, const Snapshot& snapshot);

/// The selectors of "0,1", "0-3" (the indices 0 to 3), "3:1" or "GPU-5a1c,GPU-77". Error: `usage`
/// if one is empty or named twice.
Result<std::vector<std::string>> selectors_from_text(std::string_view text);

/// True if `selector` is a non-negative number.
bool is_index(std::string_view selector);

}  // namespace berth
