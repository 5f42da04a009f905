#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/snapshot.h"

namespace berth {

/// Whether the CUDA_VISIBLE_DEVICES that this process has limits what it can be given.
enum class MaskUse { inherit, ignore };

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

/// True if each GPU has the same number with CUDA as with the driver, once CUDA_DEVICE_ORDER is PCI_BUS_ID.
/// CUDA does not count a GPU that is lost, hidden or split by MIG: what comes after one has another number,
/// and only its UUID names it to both.
bool cuda_counts_as_the_driver(const Snapshot& snapshot);

}  // namespace berth
