#include "berth/source/nvml/library.h"

#include <doctest/doctest.h>

namespace berth::nvml::outcome_test {
namespace {

TEST_CASE("an error of the driver as a whole says what to do about it") {
  struct Row {
    Return value;
    const char* says;
  };
  for (const Row& row : {Row{kLibraryNotFound, "no NVIDIA driver: libnvidia-ml.so.1 was not found"},
                         Row{kDriverNotLoaded, "modprobe"}, Row{kVersionMismatch, "Reboot"},
                         Row{kUnknown, "restart the container"}, Row{kNoPermission, "/dev/nvidiactl"},
                         Row{kOperatingSystem, "cgroup"}, Row{4711, "unknown error (4711)"}}) {
    CAPTURE(row.value);
    const Error error = error_of(row.value);
    CHECK(error.code == ErrorCode::no_driver);
    CHECK(error.message.contains(row.says));
  }
}

TEST_CASE("a value that concerns one reading leaves the device as it is") {
  for (const Return value :
       {kSuccess, kNotSupported, kNoPermission, kNotFound, kFunctionNotFound, kUnknown}) {
    CAPTURE(value);
    CHECK_FALSE(state_of(value));
  }
  CHECK(state_of(kGpuIsLost) == DeviceState::lost);
  CHECK(state_of(kResetRequired) == DeviceState::needs_reset);
}

}  // namespace
}  // namespace berth::nvml::outcome_test
