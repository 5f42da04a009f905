#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "berth/device/vendor.h"

namespace berth::source {

/// The files in /dev that a job opens to use the devices of some vendors.
struct DeviceFiles {
  std::size_t seen = 0;
  std::vector<std::string> shut{};  ///< those that this process may not read and write
};
DeviceFiles device_files(std::span<const Vendor> vendors);

}  // namespace berth::source
