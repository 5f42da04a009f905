#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/snapshot.h"

namespace berth {

/// The devices that CUDA_VISIBLE_DEVICES leaves visible, as CUDA would read it.
struct Mask {
  std::string text;                ///< as found
  std::vector<std::string> uuids;  ///< visible devices, in the mask's order
  std::vector<std::string> notes;  ///< what in it was cut off or ignored, and why

  bool operator==(const Mask&) const = default;
};

/// Reads the value of CUDA_VISIBLE_DEVICES against a snapshot. nullopt in: no mask, nullopt out. The list is
/// cut at its first invalid entry, as CUDA does, and `notes` says so. `device_order` is the value of
/// CUDA_DEVICE_ORDER: indices are taken to count in PCI bus order, and where CUDA may count otherwise (models
/// differ, and the order is not PCI_BUS_ID) `notes` says that.
std::optional<Mask> resolve_mask(std::optional<std::string_view> value, const Snapshot& snapshot,
                                 std::optional<std::string_view> device_order);

/// True if CUDA, left to itself, may number the GPUs otherwise than the driver does: their models differ.
bool numbering_is_ambiguous(const Snapshot& snapshot, std::optional<std::string_view> device_order);

}  // namespace berth
