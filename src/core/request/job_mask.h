#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/request/inherited_mask.h"
#include "berth/request/request.h"

namespace berth {

/// The variables in the environment of a job that show it its devices and no others.
struct JobMask {
  std::string vendor;
  std::string visible;  ///< the value of the vendor's mask variable
  /// Indices as the vendor's runtime counts them; else UUIDs.
  bool by_index = true;
  std::vector<std::pair<std::string, std::string>> variables;  ///< names and values, the mask first
  /// The variables that must not be set, because the runtime would choose among the job's devices
  /// by them. A variable that hides devices of another vendor here stays.
  std::vector<std::string> unset;
};

/// The mask for these devices, in their order: indices, or UUIDs if they are asked for or if one
/// device is a MIG instance, which has no index of its own. If a mask cannot hold the UUID of a
/// device, the mask has indices all the same. REQUIRES: the devices are of one vendor.
JobMask job_mask(const std::vector<std::string>& uuids, const Snapshot& snapshot, bool by_uuid = false);

/// Adds what bounds the job of this request, which has got so many devices: the memory of its share
/// of each, and the part of their processors that it asked for, where the vendor has such
/// variables. Only CUDA under MPS obeys them, so they promise nothing to the neighbours.
void bound_job(JobMask& mask, std::size_t devices, const Request& request);

/// Whether the runtime of the device's vendor accepts the device's UUID in a mask.
bool fits_mask(const Device& device);

/// The index of the device as its vendor's runtime and tools count. They count the devices of their
/// vendor from 0; our indices count all devices of the machine.
unsigned index_in_vendor(const Device& device, const Snapshot& snapshot);

/// The numbers by which the vendor's runtime finds these devices in a program that starts now. It
/// does not count a device that is lost, hidden or split by MIG. nullopt for a device: it is not
/// counted. nullopt for all: a device of the vendor does not answer, so the numbers are not known.
std::optional<std::vector<std::optional<unsigned>>> runtime_indices(const std::vector<std::string>& uuids,
                                                                    const Snapshot& snapshot);

/// What to tell a user who puts this mask into an environment that has these variables: that the
/// runtime may count otherwise, and what helps. nullopt: nothing.
std::optional<std::string> numbering_note(const JobMask& mask, const Snapshot& snapshot,
                                          const MaskVariables& variables);

/// The number by which the runtime knows each of these devices, in a process with these variables.
/// nullopt: the mask hides the device, or its number is not known, because the numbering is
/// ambiguous and no mask of UUIDs says the order.
std::vector<std::optional<std::size_t>> ordinals(const std::vector<std::string>& uuids,
                                                 const Snapshot& snapshot, const MaskVariables& variables);

}  // namespace berth
