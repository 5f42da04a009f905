#include <time.h>

#include <algorithm>

#include "nvml/call.h"

namespace berth::sim {
namespace {

std::uint64_t total_bytes(const Target& target) {
  return target.instance != nullptr ? target.instance->memory_bytes : target.device.memory_bytes;
}

std::uint64_t reserved_bytes(const Target& target) {
  return target.instance != nullptr ? 0 : target.device.reserved_bytes;
}

std::uint64_t used_bytes(const Target& target) {
  const Load load = target.load();
  return target.instance != nullptr
             ? std::min(load.slot_used_bytes[target.slot], target.instance->memory_bytes)
             : load.used_bytes;
}

/// body: (const Target&) -> Code, for devices that have memory of their own
template <typename Body>
Code on_memory(const char* name, Handle handle, Body body) {
  return on_device(name, handle, [&](const Target& target) {
    return target.device.supports(Reading::memory) ? body(target) : kNotSupported;
  });
}

Code clock(const char* name, Handle handle, unsigned type, unsigned* out, bool maximum) {
  return on_reading(name, handle, Reading::clocks, [&](const Target& target) {
    if (out == nullptr || type > 3) return kInvalidArgument;
    const Device& device = target.device;
    *out = type == 2 ? (maximum ? device.model.max_memory_mhz : device.memory_clock_mhz)
                     : (maximum ? device.model.max_sm_mhz : device.sm_clock_mhz);
    return kSuccess;
  });
}

// With MIG on, the driver has no utilisation of the whole device.
bool has_utilization(const Target& target) {
  return !target.device.mig_enabled;
}

Code coder_utilization(const char* name, Handle handle, unsigned* percent, unsigned* period_us) {
  return on_reading(name, handle, Reading::encoder, [&](const Target& target) {
    if (percent == nullptr || period_us == nullptr) return kInvalidArgument;
    if (!has_utilization(target)) return kNotSupported;
    *percent = 0;
    *period_us = 167000;
    return kSuccess;
  });
}

std::uint64_t throttle_reasons(const Device& device) {
  return device.throttle_reasons != 0 || device.utilization != 0 ? device.throttle_reasons : 1;
}

}  // namespace

std::uint64_t energy_mj(const Device& device) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ms =
      static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  return ms * device.power_mw / 1000;
}

SIM_EXPORT Code nvmlDeviceGetMemoryInfo(Handle handle, MemoryV1* out) {
  return on_memory(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    const std::uint64_t total = total_bytes(target);
    const std::uint64_t used = used_bytes(target);
    const std::uint64_t reserved = reserved_bytes(target);
    // Before R510 the reserve is no part of the total; since then this call counts it as used.
    *out = target.generation().reserve_is_used() ? MemoryV1{total, total - reserved - used, used + reserved}
                                                 : MemoryV1{total - reserved, total - reserved - used, used};
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetMemoryInfo_v2(Handle handle, MemoryV2* out) {
  return on_memory(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (out->version != version_word(sizeof(MemoryV2), 2))
      return static_cast<Code>(target.generation().version_mismatch());
    out->total = total_bytes(target);
    out->reserved = reserved_bytes(target);
    out->used = used_bytes(target);
    out->free = out->total - out->reserved - out->used;
    return kSuccess;
  });
}

// MIG instances have their share of the window; nvitop relies on it.
SIM_EXPORT Code nvmlDeviceGetBAR1MemoryInfo(Handle handle, MemoryV1* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (!target.device.supports(Reading::bar1)) return kNotSupported;
    const std::uint64_t total = target.device.bar1_bytes(target.instance);
    *out = {total, total - kMiB, kMiB};
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetUtilizationRates(Handle handle, Utilization* out) {
  return on_reading(__func__, handle, Reading::utilization, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (!has_utilization(target)) return kNotSupported;
    *out = {target.device.utilization, target.device.memory_utilization};
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetEncoderUtilization(Handle handle, unsigned* percent, unsigned* period_us) {
  return coder_utilization(__func__, handle, percent, period_us);
}
SIM_EXPORT Code nvmlDeviceGetDecoderUtilization(Handle handle, unsigned* percent, unsigned* period_us) {
  return coder_utilization(__func__, handle, percent, period_us);
}

SIM_EXPORT Code nvmlDeviceGetTemperature(Handle handle, unsigned sensor, unsigned* out) {
  return on_reading(__func__, handle, Reading::temperature, [&](const Target& target) {
    if (out == nullptr || sensor != 0) return kInvalidArgument;
    *out = target.device.temperature;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetTemperatureV(Handle handle, TemperatureV1* out) {
  return on_reading(__func__, handle, Reading::temperature, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (out->version != version_word(sizeof(TemperatureV1), 1))
      return static_cast<Code>(target.generation().version_mismatch());
    if (out->sensor != 0) return kInvalidArgument;
    out->temperature = static_cast<std::int32_t>(target.device.temperature);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetTemperatureThreshold(Handle handle, unsigned type, unsigned* out) {
  return on_reading(__func__, handle, Reading::temperature, [&](const Target&) {
    constexpr unsigned kThresholds[] = {92, 89, 95, 87};
    if (out == nullptr || type > 7) return kInvalidArgument;
    if (type > 3) return kNotSupported;
    *out = kThresholds[type];
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetPowerUsage(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::power, out,
                     [](const Target& target) { return target.device.power_mw; });
}

SIM_EXPORT Code nvmlDeviceGetEnforcedPowerLimit(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::power_limit, out,
                     [](const Target& target) { return target.device.power_limit_mw; });
}
SIM_EXPORT Code nvmlDeviceGetPowerManagementLimit(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::power_limit, out,
                     [](const Target& target) { return target.device.power_limit_mw; });
}
SIM_EXPORT Code nvmlDeviceGetPowerManagementDefaultLimit(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::power_limit, out,
                     [](const Target& target) { return target.device.model.power_limit_w * 1000; });
}
SIM_EXPORT Code nvmlDeviceGetPowerManagementLimitConstraints(Handle handle, unsigned* least, unsigned* most) {
  return on_reading(__func__, handle, Reading::power_limit, [&](const Target& target) {
    if (least == nullptr || most == nullptr) return kInvalidArgument;
    *least = target.device.model.power_limit_w * 1000 * 2 / 5;
    *most = target.device.model.power_limit_w * 1000;
    return kSuccess;
  });
}
SIM_EXPORT Code nvmlDeviceGetPowerManagementMode(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::power_limit, out, [](const Target&) { return 1; });
}

SIM_EXPORT Code nvmlDeviceGetTotalEnergyConsumption(Handle handle, std::uint64_t* out) {
  return read_number(__func__, handle, Reading::energy, out,
                     [](const Target& target) { return energy_mj(target.device); });
}

SIM_EXPORT Code nvmlDeviceGetClockInfo(Handle handle, unsigned type, unsigned* out) {
  return clock(__func__, handle, type, out, false);
}
SIM_EXPORT Code nvmlDeviceGetMaxClockInfo(Handle handle, unsigned type, unsigned* out) {
  return clock(__func__, handle, type, out, true);
}
SIM_EXPORT Code nvmlDeviceGetApplicationsClock(Handle handle, unsigned type, unsigned* out) {
  return clock(__func__, handle, type, out, true);
}

SIM_EXPORT Code nvmlDeviceGetPerformanceState(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pstate, out,
                     [](const Target& target) { return target.device.pstate; });
}
SIM_EXPORT Code nvmlDeviceGetPowerState(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pstate, out,
                     [](const Target& target) { return target.device.pstate; });
}

SIM_EXPORT Code nvmlDeviceGetNumFans(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::fan, out, [](const Target&) { return 1; });
}
SIM_EXPORT Code nvmlDeviceGetFanSpeed(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::fan, out,
                     [](const Target& target) { return target.device.fan_percent; });
}
SIM_EXPORT Code nvmlDeviceGetFanSpeed_v2(Handle handle, unsigned fan, unsigned* out) {
  return on_reading(__func__, handle, Reading::fan, [&](const Target& target) {
    if (out == nullptr || fan != 0) return kInvalidArgument;
    *out = target.device.fan_percent;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetCurrentClocksEventReasons(Handle handle, std::uint64_t* out) {
  return read_number(__func__, handle, Reading::throttle, out,
                     [](const Target& target) { return throttle_reasons(target.device); });
}
SIM_EXPORT Code nvmlDeviceGetCurrentClocksThrottleReasons(Handle handle, std::uint64_t* out) {
  return read_number(__func__, handle, Reading::throttle, out,
                     [](const Target& target) { return throttle_reasons(target.device); });
}
SIM_EXPORT Code nvmlDeviceGetSupportedClocksEventReasons(Handle handle, std::uint64_t* out) {
  return read_number(__func__, handle, Reading::throttle, out, [](const Target&) { return 0x1FF; });
}
SIM_EXPORT Code nvmlDeviceGetSupportedClocksThrottleReasons(Handle handle, std::uint64_t* out) {
  return read_number(__func__, handle, Reading::throttle, out, [](const Target&) { return 0x1FF; });
}

SIM_EXPORT Code nvmlDeviceGetCurrPcieLinkGeneration(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pcie, out,
                     [](const Target& target) { return target.device.model.pcie_generation; });
}
SIM_EXPORT Code nvmlDeviceGetMaxPcieLinkGeneration(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pcie, out,
                     [](const Target& target) { return target.device.model.pcie_generation; });
}
SIM_EXPORT Code nvmlDeviceGetCurrPcieLinkWidth(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pcie, out, [](const Target&) { return 16; });
}
SIM_EXPORT Code nvmlDeviceGetMaxPcieLinkWidth(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pcie, out, [](const Target&) { return 16; });
}
SIM_EXPORT Code nvmlDeviceGetPcieThroughput(Handle handle, unsigned, unsigned* out) {
  return read_number(__func__, handle, Reading::pcie, out, [](const Target&) { return 0; });
}
SIM_EXPORT Code nvmlDeviceGetPcieReplayCounter(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::pcie, out, [](const Target&) { return 0; });
}

}  // namespace berth::sim
