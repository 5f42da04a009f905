#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/core/mask.h"

namespace berth {

/// What a job finds in its environment, so that it sees its devices and no others.
struct JobMask {
  std::string vendor;
  std::string visible;  ///< the value of the vendor's mask variable
  /// Indices as the vendor's runtime counts them; else UUIDs.
  bool by_index = true;
  std::vector<std::pair<std::string, std::string>> variables;  ///< names and values, the mask first
  /// What must not be there: the runtime would choose by it among the job's devices. A variable that hides
  /// devices of another vendor here stays.
  std::vector<std::string> unset;
};

/// The mask for these devices, in their order: indices, or UUIDs when asked for or when one is a MIG
/// instance, which has no index of its own. A device whose UUID no mask can hold makes it indices all the
/// same. REQUIRES: they are of one vendor.
JobMask job_mask(const std::vector<std::string>& uuids, const Snapshot& snapshot, bool by_uuid = false);

/// Whether the runtime of the device's vendor knows it by this UUID.
bool fits_mask(const Device& device);

/// Runtimes and makers' tools count the devices of their vendor from 0; ours are those of a whole machine.
unsigned index_in_vendor(const Device& device, const Snapshot& snapshot);

/// What to tell who puts this mask into an environment that has these variables: nullopt, or that the runtime
/// may count otherwise, and what helps.
std::optional<std::string> numbering_note(const JobMask& mask, const Snapshot& snapshot,
                                          const MaskVariables& variables);

/// By what number the runtime knows each of these devices in a process with these variables. nullopt: the
/// mask hides it, or nobody can tell because the numbering is ambiguous and no mask of UUIDs says the order.
std::vector<std::optional<std::size_t>> ordinals(const std::vector<std::string>& uuids,
                                                 const Snapshot& snapshot, const MaskVariables& variables);

}  // namespace berth
