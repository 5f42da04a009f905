#include "nvml/call.h"

namespace berth::sim {
namespace {

/// value: (const Instance&) -> number
template <typename Value>
Code read_instance(const char* name, Handle handle, unsigned* out, Value value) {
  return on_device(name, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (target.instance == nullptr) return kNotSupported;
    *out = value(*target.instance);
    return kSuccess;
  });
}

// R450 knows the first six numbers only; what lies behind them belongs to the client.
Code attributes(const char* name, Handle handle, void* out, std::size_t size) {
  return on_device(name, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (target.instance == nullptr) return kNotSupported;
    const Instance& instance = *target.instance;
    const unsigned slices = instance.gpu_slices;
    const Attributes all{instance.multiprocessors,
                         slices,
                         slices,
                         0,
                         slices / 7,
                         slices / 7,
                         slices,
                         instance.compute_slices,
                         instance.memory_bytes / kMiB};
    std::memcpy(out, &all, size);
    return kSuccess;
  });
}

}  // namespace

SIM_EXPORT Code nvmlDeviceGetMigMode(Handle handle, unsigned* current, unsigned* pending) {
  return on_reading(__func__, handle, Reading::mig, [&](const Target& target) {
    if (current == nullptr || pending == nullptr) return kInvalidArgument;
    *current = *pending = target.device.mig_enabled ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetMaxMigDeviceCount(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.instance == nullptr && target.device.mig_enabled ? 7 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetMigDeviceHandleByIndex(Handle handle, unsigned index, Handle* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (target.instance != nullptr || !target.device.supports(Reading::mig) || !target.device.mig_enabled)
      return kNotSupported;
    if (index >= 7) return kInvalidArgument;
    if (index >= target.device.instances.size() || !target.device.instances[index].present) return kNotFound;
    *out = handle_of(target.index, static_cast<int>(index));
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceIsMigDeviceHandle(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.instance != nullptr ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetGpuInstanceId(Handle handle, unsigned* out) {
  return read_instance(__func__, handle, out, [](const Instance& instance) { return instance.gpu_instance; });
}
SIM_EXPORT Code nvmlDeviceGetComputeInstanceId(Handle handle, unsigned* out) {
  return read_instance(__func__, handle, out,
                       [](const Instance& instance) { return instance.compute_instance; });
}

SIM_EXPORT Code nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle handle, Handle* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr || target.instance == nullptr) return kInvalidArgument;
    *out = handle_of(target.index, -1);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetAttributes(Handle handle, void* out) {
  return attributes(__func__, handle, out, 24);
}
SIM_EXPORT Code nvmlDeviceGetAttributes_v2(Handle handle, void* out) {
  return attributes(__func__, handle, out, sizeof(Attributes));
}

}  // namespace berth::sim
