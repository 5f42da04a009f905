#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/snapshot.h"
#include "berth/device/vendor.h"

namespace berth {

/// Whether the masks in this process's environment limit which devices it can be given.
enum class MaskUse { inherit, ignore };

/// The variables that mask a vendor's devices, as they are in a process's environment, by name.
using MaskVariables = std::map<std::string, std::string, std::less<>>;

/// The devices of one vendor that a mask leaves visible, as the vendor's runtime would read it.
struct Mask {
  std::string text;                ///< the value as found
  std::vector<std::string> uuids;  ///< visible devices, in the mask's order
  std::vector<std::string> notes;  ///< which entries were cut off or ignored, and why
  std::string vendor{kUntoldVendor};

  bool operator==(const Mask&) const = default;
};

/// Reads the masks against a snapshot, one for each vendor that has a variable set and a device
/// here. A list is cut at its first invalid entry, as the runtimes do, and `notes` says so. An
/// index means the driver's number. If the runtime may count otherwise (see
/// numbering_is_ambiguous), `notes` says that.
std::vector<Mask> resolve_masks(const MaskVariables& variables, const Snapshot& snapshot);

/// True if the vendor's runtime may number its devices otherwise than the driver does: the runtime
/// has an order of its own, the variables do not set the driver's order, and the models differ.
bool numbering_is_ambiguous(const Vendor& vendor, const Snapshot& snapshot, const MaskVariables& variables);

/// Only the devices of the vendor, counted from 0 as the vendor's runtime counts them.
Snapshot devices_of_vendor(const Snapshot& snapshot, std::string_view vendor);

/// Whether all devices are of one vendor.
bool is_of_one_vendor(const Snapshot& snapshot);

/// True if each GPU of the vendor has the same number with its runtime as with the driver, once the
/// order variable is set. Runtimes do not count a GPU that is lost, hidden or split by MIG. So the
/// GPUs after such a GPU have another number with the runtime, and only a UUID names the same GPU
/// to driver and runtime.
bool runtime_counts_as_the_driver(const Vendor& vendor, const Snapshot& snapshot);

}  // namespace berth
