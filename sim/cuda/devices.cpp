#include <cstdio>
#include <cstring>
#include <string_view>

#include "cuda/driver.h"

namespace berth::sim {
namespace {

// CUdevice_attribute.
constexpr int kMaxThreadsPerBlock = 1;
constexpr int kWarpSize = 10;
constexpr int kClockRateKhz = 13;
constexpr int kMultiprocessors = 16;
constexpr int kIntegrated = 18;
constexpr int kComputeModeAttribute = 20;
constexpr int kConcurrentKernels = 31;
constexpr int kEccEnabled = 32;
constexpr int kPciBus = 33;
constexpr int kPciDevice = 34;
constexpr int kMemoryClockKhz = 36;
constexpr int kUnifiedAddressing = 41;
constexpr int kPciDomain = 50;
constexpr int kMajor = 75;
constexpr int kMinor = 76;
constexpr int kManagedMemory = 83;

struct ErrorName {
  int result;
  const char* name;
  const char* text;
};

constexpr ErrorName kErrorNames[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorName* error_named(int result) {
  for (const ErrorName& error : kErrorNames)
    if (error.result == result) return &error;
  return nullptr;
}

int attribute(const Located& located, int which) {
  const Device& device = *located.device;
  const unsigned processors =
      located.instance != nullptr ? located.instance->multiprocessors : device.model.multiprocessors;
  switch (which) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kWarpSize:
      return 32;
    case kClockRateKhz:
      return static_cast<int>(device.model.max_sm_mhz * 1000);
    case kMultiprocessors:
      return static_cast<int>(processors);
    case kIntegrated:
      return device.model.memory == Memory::unified ? 1 : 0;
    case kComputeModeAttribute:
      return static_cast<int>(device.compute_mode);
    case kEccEnabled:
      return device.ecc ? 1 : 0;
    case kPciBus:
      return static_cast<int>(device.pci.bus);
    case kPciDevice:
      return static_cast<int>(device.pci.device);
    case kMemoryClockKhz:
      return static_cast<int>(device.model.max_memory_mhz * 1000);
    case kPciDomain:
      return static_cast<int>(device.pci.domain);
    case kMajor:
      return device.model.major;
    case kMinor:
      return device.model.minor;
    case kConcurrentKernels:
    case kUnifiedAddressing:
    case kManagedMemory:
      return 1;
    default:
      return 0;
  }
}

/// body: (const Located&) -> Result
template <typename Body>
Result on_located(const char* name, int ordinal, Body body) {
  return on_ordinal(name, ordinal, [&](Driver& driver, Ordinal& entry) {
    const Located located = driver.locate(entry);
    return located.device != nullptr ? body(located) : kInvalidDevice;
  });
}

Result give_uuid(const char* name, unsigned char* out, int ordinal, bool of_instance) {
  return on_located(name, ordinal, [&](const Located& located) {
    if (out == nullptr) return kInvalidValue;
    uuid_bytes(of_instance && located.instance != nullptr ? located.instance->uuid : located.device->uuid,
               out);
    return kOk;
  });
}

Result give_text(const std::string& text, char* out, int length) {
  if (out == nullptr || length <= 0) return kInvalidValue;
  std::snprintf(out, static_cast<std::size_t>(length), "%s", text.c_str());
  return kOk;
}

}  // namespace

SIM_EXPORT Result cuInit(unsigned flags) {
  CudaCall call(__func__);
  Result result = flags != 0 ? kInvalidValue : call.enter_unready();
  if (result == kOk) result = call.driver().init();
  return call.leave(result);
}

SIM_EXPORT Result cuDriverGetVersion(int* out) {
  CudaCall call(__func__);
  if (out == nullptr) return call.leave(kInvalidValue);
  if (!call.driver().world().refresh()) return call.leave(kUnknownError);
  *out = call.driver().world().scenario().cuda_version();
  return call.leave(kOk);
}

SIM_EXPORT Result cuDeviceGetCount(int* out) {
  return on_driver(__func__, [&](Driver& driver) {
    if (out == nullptr) return kInvalidValue;
    *out = static_cast<int>(driver.ordinals().size());
    return kOk;
  });
}

SIM_EXPORT Result cuDeviceGet(int* out, int ordinal) {
  return on_ordinal(__func__, ordinal, [&](Driver&, Ordinal&) {
    if (out == nullptr) return kInvalidValue;
    *out = ordinal;
    return kOk;
  });
}

SIM_EXPORT Result cuDeviceGetName(char* out, int length, int ordinal) {
  return on_located(__func__, ordinal, [&](const Located& located) {
    const std::string part = located.instance != nullptr ? " MIG " + located.instance->profile : "";
    return give_text(located.device->name + part, out, length);
  });
}

SIM_EXPORT Result cuDeviceGetUuid(unsigned char* out, int ordinal) {
  return give_uuid(__func__, out, ordinal, false);
}
SIM_EXPORT Result cuDeviceGetUuid_v2(unsigned char* out, int ordinal) {
  return give_uuid(__func__, out, ordinal, true);
}

SIM_EXPORT Result cuDeviceGetPCIBusId(char* out, int length, int ordinal) {
  return on_located(__func__, ordinal, [&](const Located& located) {
    return give_text(pci_text(located.device->pci, 4), out, length);
  });
}

SIM_EXPORT Result cuDeviceGetByPCIBusId(int* out, const char* text) {
  return on_driver(__func__, [&](Driver& driver) {
    unsigned domain = 0, bus = 0, slot = 0;
    if (out == nullptr || text == nullptr) return kInvalidValue;
    if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
      domain = 0;
      if (std::sscanf(text, "%x:%x", &bus, &slot) != 2) return kInvalidValue;
    }
    for (std::size_t i = 0; i < driver.ordinals().size(); ++i) {
      const Located located = driver.locate(driver.ordinals()[i]);
      if (located.device == nullptr || located.device->pci.domain != domain || located.device->pci.bus != bus)
        continue;
      *out = static_cast<int>(i);
      return kOk;
    }
    return kInvalidDevice;
  });
}

SIM_EXPORT Result cuDeviceTotalMem_v2(std::size_t* out, int ordinal) {
  return on_ordinal(__func__, ordinal, [&](Driver& driver, Ordinal& entry) {
    std::uint64_t total = 0, free = 0;
    if (out == nullptr) return kInvalidValue;
    driver.room(entry, total, free);
    *out = total;
    return kOk;
  });
}

SIM_EXPORT Result cuDeviceGetAttribute(int* out, int which, int ordinal) {
  return on_located(__func__, ordinal, [&](const Located& located) {
    if (out == nullptr || which <= 0) return kInvalidValue;
    *out = attribute(located, which);
    return kOk;
  });
}

SIM_EXPORT Result cuDeviceComputeCapability(int* major, int* minor, int ordinal) {
  return on_located(__func__, ordinal, [&](const Located& located) {
    if (major == nullptr || minor == nullptr) return kInvalidValue;
    *major = located.device->model.major;
    *minor = located.device->model.minor;
    return kOk;
  });
}

SIM_EXPORT Result cuGetErrorName(int result, const char** out) {
  const ErrorName* found = error_named(result);
  if (out == nullptr) return kInvalidValue;
  *out = found != nullptr ? found->name : nullptr;
  return found != nullptr ? kOk : kInvalidValue;
}

SIM_EXPORT Result cuGetErrorString(int result, const char** out) {
  const ErrorName* found = error_named(result);
  if (out == nullptr) return kInvalidValue;
  *out = found != nullptr ? found->text : nullptr;
  return found != nullptr ? kOk : kInvalidValue;
}

}  // namespace berth::sim
