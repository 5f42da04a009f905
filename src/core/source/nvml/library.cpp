#include "berth/source/nvml/library.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "berth/sys/process.h"

namespace berth::nvml {
namespace {

constexpr std::array<std::string_view, 31> kWords{
    "success",
    "not initialised",
    "invalid argument",
    "not supported",
    "no permission",
    "already initialised",
    "not found",
    "insufficient size",
    "the external power cables are not attached properly",
    "the NVIDIA kernel module is not loaded",
    "timeout",
    "interrupt problem",
    "library not found",
    "function not found",
    "the infoROM is corrupt",
    "GPU is lost: it fell off the bus",
    "GPU requires a reset",
    "the operating system or a cgroup blocks the device",
    "driver and library versions differ",
    "in use",
    "out of host memory",
    "no data",
    "vGPU ECC not supported",
    "insufficient resources",
    "frequency not supported",
    "argument version mismatch",
    "deprecated",
    "not ready",
    "no GPU found",
    "invalid state",
    "reset type not supported",
};

}  // namespace

std::string words_of(Return value) {
  return fmt::format("{} ({})", value < kWords.size() ? kWords[value] : "unknown error", value);
}

Error error_of(Return value) {
  const auto no_driver = [](std::string message) { return Error{ErrorCode::no_driver, std::move(message)}; };
  switch (value) {
    case kLibraryNotFound:
      return no_driver(
          "no NVIDIA driver: libnvidia-ml.so.1 was not found. Install the driver, or put the library's "
          "folder on LD_LIBRARY_PATH; in a container, start it with its GPUs (docker run --gpus all)");
    case kDriverNotLoaded:
      return no_driver(
          "no NVIDIA driver: its kernel module is not loaded. Load it (sudo modprobe nvidia); if that fails, "
          "dmesg says why");
    case kVersionMismatch:
      return no_driver(
          "the NVIDIA driver was upgraded, but the old kernel module still runs: driver and library versions "
          "differ. Reboot, or end all GPU programs and reload the module (sudo rmmod nvidia, then sudo "
          "modprobe nvidia)");
    case kNoPermission:
      return no_driver(
          "the NVIDIA driver may not be used by this user: no permission. Look at the mode and group of "
          "/dev/nvidiactl and /dev/nvidia0");
    case kUnknown:
      return no_driver(
          "the NVIDIA driver does not start: unknown error (999). In a container this means that its access "
          "to the GPUs was revoked (systemctl daemon-reload does so): restart the container; elsewhere dmesg "
          "says why");
    case kOperatingSystem:
      return no_driver(
          "the NVIDIA driver cannot be reached: the operating system or a cgroup blocks /dev/nvidiactl");
    default:
      return no_driver("the NVIDIA driver does not work: " + words_of(value));
  }
}

std::optional<DeviceState> state_of(Return value) {
  switch (value) {
    case kGpuIsLost:
      return DeviceState::lost;
    case kResetRequired:
      return DeviceState::needs_reset;
    case kInsufficientPower:
    case kIrqIssue:
    case kOperatingSystem:
      return DeviceState::failed;
    default:
      return std::nullopt;
  }
}

bool wants_older_form(Return value) {
  return value == kFunctionNotFound || value == kArgumentVersionMismatch;
}

Result<Library> Library::load() {
  // Never "libnvidia-ml.so": the CUDA toolkit installs a stub of that name, which fails every call.
  auto library = sys::DynamicLibrary::open("libnvidia-ml.so.1");
  if (!library) {
    Error error = error_of(kLibraryNotFound);
    error.message += " (" + library.error().message + ")";
    return std::unexpected(std::move(error));
  }
  return Library([loaded = *library](const char* name) { return loaded.symbol(name); });
}

}  // namespace berth::nvml
