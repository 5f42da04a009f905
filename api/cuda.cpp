#include "berth/api/cuda.h"

#include <dlfcn.h>

namespace berth {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int kNotInitialized = 3;  // CUDA_ERROR_NOT_INITIALIZED

}  // namespace

bool cuda_is_up() {
  void* driver = ::dlopen(kDriver, RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  // It answers that before cuInit, which reads the mask, and never after.
  using DeviceCount = int (*)(int*);
  const auto device_count = reinterpret_cast<DeviceCount>(::dlsym(driver, "cuDeviceGetCount"));
  int count = 0;
  const bool up = device_count != nullptr && device_count(&count) != kNotInitialized;
  ::dlclose(driver);
  return up;
}

}  // namespace berth
