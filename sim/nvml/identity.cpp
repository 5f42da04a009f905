#include <cstdio>
#include <cstdlib>

#include "nvml/call.h"

namespace berth::sim {
namespace {

struct Found {
  int device = -1;
  int slot = -1;
  Code otherwise = kNotFound;
};

template <typename Find>
Code look_up(const char* name, Handle* out, Find find) {
  Call call(name);
  Code code = call.enter_lookup();
  if (code != kSuccess) return call.leave(code);
  const Found place = find(call.world().scenario());
  code = call.found(place.device, place.slot);
  if (code == kSuccess && out == nullptr) code = kInvalidArgument;
  if (code == kSuccess && place.device < 0) code = place.otherwise;
  if (code == kSuccess) *out = handle_of(static_cast<unsigned>(place.device), place.slot);
  return call.leave(code);
}

Code count_devices(const char* name, unsigned* out) {
  return on_system(name, [&](World& world) {
    if (out == nullptr) return kInvalidArgument;
    *out = static_cast<unsigned>(world.scenario().devices.size());
    return kSuccess;
  });
}

Code handle_by_index(const char* name, unsigned index, Handle* out) {
  return look_up(name, out, [&](const Scenario& scenario) {
    if (index >= scenario.devices.size()) return Found{-1, -1, kInvalidArgument};
    return Found{static_cast<int>(index), -1, kSuccess};
  });
}

bool parse_bus_id(const char* text, PciAddress& pci) {
  unsigned function = 0;
  int used = 0;
  const auto whole = [&] { return text[used] == '\0'; };
  if (std::sscanf(text, "%x:%x:%x.%x%n", &pci.domain, &pci.bus, &pci.device, &function, &used) == 4 &&
      whole())
    return true;
  if (std::sscanf(text, "%x:%x:%x%n", &pci.domain, &pci.bus, &pci.device, &used) == 3 && whole()) return true;
  pci.domain = 0;
  return std::sscanf(text, "%x:%x.%x%n", &pci.bus, &pci.device, &function, &used) == 3 && whole();
}

Code handle_by_bus_id(const char* name, const char* text, Handle* out) {
  return look_up(name, out, [&](const Scenario& scenario) {
    PciAddress pci;
    if (text == nullptr || !parse_bus_id(text, pci)) return Found{-1, -1, kInvalidArgument};
    for (std::size_t i = 0; i < scenario.devices.size(); ++i) {
      const PciAddress& own = scenario.devices[i].pci;
      if (own.domain == pci.domain && own.bus == pci.bus && own.device == pci.device)
        return Found{static_cast<int>(i), -1, kSuccess};
    }
    return Found{};
  });
}

Found find_uuid(const Scenario& scenario, std::string_view uuid) {
  for (std::size_t i = 0; i < scenario.devices.size(); ++i) {
    const Device& device = scenario.devices[i];
    if (device.uuid == uuid) return {static_cast<int>(i), -1, kSuccess};
    if (scenario.active_generation().branch < 465) continue;  // MIG UUIDs are accepted since R465
    for (std::size_t slot = 0; slot < device.instances.size(); ++slot)
      if (device.instances[slot].present && device.instances[slot].uuid == uuid)
        return {static_cast<int>(i), static_cast<int>(slot), kSuccess};
  }
  return {};
}

std::string shown_name(const Target& target) {
  if (target.instance == nullptr) return target.device.name;
  return target.device.name + " MIG " + target.instance->profile;
}

template <typename Info>
void fill_address(const Device& device, Info& info) {
  info.domain = device.pci.domain;
  info.bus = device.pci.bus;
  info.device = device.pci.device;
  info.pci_device_id = device.model.pci_device << 16 | 0x10DE;
}

template <typename Info>
Code pci_info(const char* name, Handle handle, Info* out) {
  return on_device(name, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    Info info{};
    fill_address(target.device, info);
    if constexpr (requires { info.pci_subsystem_id; }) info.pci_subsystem_id = 0x16C110DE;
    if constexpr (requires { info.bus_id_legacy; }) {
      std::snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "%s",
                    pci_text(target.device.pci, 4).c_str());
      std::snprintf(info.bus_id, sizeof info.bus_id, "%s", pci_text(target.device.pci, 8).c_str());
    } else {
      std::snprintf(info.bus_id, sizeof info.bus_id, "%s", pci_text(target.device.pci, 4).c_str());
    }
    *out = info;
    return kSuccess;
  });
}

}  // namespace

SIM_EXPORT Code nvmlDeviceGetCount(unsigned* out) {
  return count_devices(__func__, out);
}
SIM_EXPORT Code nvmlDeviceGetCount_v2(unsigned* out) {
  return count_devices(__func__, out);
}

SIM_EXPORT Code nvmlDeviceGetHandleByIndex(unsigned index, Handle* out) {
  return handle_by_index(__func__, index, out);
}
SIM_EXPORT Code nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* out) {
  return handle_by_index(__func__, index, out);
}

SIM_EXPORT Code nvmlDeviceGetHandleByPciBusId(const char* text, Handle* out) {
  return handle_by_bus_id(__func__, text, out);
}
SIM_EXPORT Code nvmlDeviceGetHandleByPciBusId_v2(const char* text, Handle* out) {
  return handle_by_bus_id(__func__, text, out);
}

SIM_EXPORT Code nvmlDeviceGetHandleByUUID(const char* uuid, Handle* out) {
  return look_up(__func__, out, [&](const Scenario& scenario) {
    if (uuid == nullptr) return Found{-1, -1, kInvalidArgument};
    return find_uuid(scenario, uuid);
  });
}

SIM_EXPORT Code nvmlDeviceGetHandleBySerial(const char* serial, Handle* out) {
  return look_up(__func__, out, [&](const Scenario& scenario) {
    if (serial == nullptr) return Found{-1, -1, kInvalidArgument};
    for (std::size_t i = 0; i < scenario.devices.size(); ++i)
      if (scenario.devices[i].serial == serial) return Found{static_cast<int>(i), -1, kSuccess};
    return Found{};
  });
}

SIM_EXPORT Code nvmlDeviceGetIndex(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.instance != nullptr ? static_cast<unsigned>(target.slot) : target.index;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetName(Handle handle, char* out, unsigned length) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (!target.device.supports(Reading::name)) return kNotSupported;
    return copy_text(shown_name(target), out, length);
  });
}

SIM_EXPORT Code nvmlDeviceGetUUID(Handle handle, char* out, unsigned length) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (!target.device.supports(Reading::uuid)) return kNotSupported;
    return copy_text(target.instance != nullptr ? target.instance->uuid : target.device.uuid, out, length);
  });
}

SIM_EXPORT Code nvmlDeviceGetMinorNumber(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::minor, out,
                     [](const Target& target) { return target.device.minor; });
}

SIM_EXPORT Code nvmlDeviceGetSerial(Handle handle, char* out, unsigned length) {
  return on_reading(__func__, handle, Reading::serial,
                    [&](const Target& target) { return copy_text(target.device.serial, out, length); });
}

SIM_EXPORT Code nvmlDeviceGetVbiosVersion(Handle handle, char* out, unsigned length) {
  return on_device(__func__, handle, [&](const Target&) { return copy_text("96.00.74.00.01", out, length); });
}

SIM_EXPORT Code nvmlDeviceGetPciInfo(Handle handle, PciInfoV1* out) {
  return pci_info(__func__, handle, out);
}
SIM_EXPORT Code nvmlDeviceGetPciInfo_v2(Handle handle, PciInfoV2* out) {
  return pci_info(__func__, handle, out);
}
SIM_EXPORT Code nvmlDeviceGetPciInfo_v3(Handle handle, PciInfoV3* out) {
  return pci_info(__func__, handle, out);
}

SIM_EXPORT Code nvmlDeviceGetPciInfoExt(Handle handle, PciInfoExt* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (out->version != version_word(sizeof(PciInfoExt), 1))
      return static_cast<Code>(target.generation().version_mismatch());
    fill_address(target.device, *out);
    out->pci_subsystem_id = 0x16C110DE;
    out->base_class = 3;
    out->sub_class = target.device.model.serial ? 2 : 0;
    std::snprintf(out->bus_id, sizeof out->bus_id, "%s", pci_text(target.device.pci, 8).c_str());
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (major == nullptr || minor == nullptr) return kInvalidArgument;
    if (!target.device.supports(Reading::compute_capability)) return kNotSupported;
    *major = target.device.model.major;
    *minor = target.device.model.minor;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetArchitecture(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.device.model.architecture;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetBrand(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.device.model.brand;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetBoardId(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.device.pci.domain << 16 | target.device.pci.bus << 8 | target.device.pci.device << 3;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetMultiGpuBoard(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target&) {
    if (out == nullptr) return kInvalidArgument;
    *out = 0;
    return kSuccess;
  });
}

}  // namespace berth::sim
