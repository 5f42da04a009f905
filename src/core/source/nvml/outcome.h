#pragma once

#include <optional>
#include <string>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/source/nvml/abi.h"

namespace berth::nvml {

/// The Error for a return value that concerns the driver as a whole, with the remedy. The one place
/// where a return value becomes an Error.
Error error_of(Return value);

/// What a return value says of the device that was asked about. nullopt: it concerns only the
/// reading.
std::optional<DeviceState> state_of(Return value);

/// "GPU is lost (15)".
std::string words_of(Return value);

/// The call was refused for the shape of its argument: an older form may do.
bool wants_older_form(Return value);

}  // namespace berth::nvml
