#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "nvml/call.h"

namespace berth::sim {
namespace {

/// body: (const Target& a, unsigned b) -> Code
template <typename Body>
Code on_pair(const char* name, Handle first, Handle second, Body body) {
  return on_device(name, first, [&](const Target& target) {
    for (unsigned i = 0; i < target.scenario().devices.size(); ++i)
      if (handle_of(i, -1) == second) return body(target, i);
    return kInvalidArgument;
  });
}

/// body: (const Target&, const Link&) -> Code. 2 ends a client's walk over the links, 3 says "no
/// NVLink at all".
template <typename Body>
Code on_link(const char* name, Handle handle, unsigned link, Body body) {
  return on_reading(name, handle, Reading::nvlink, [&](const Target& target) {
    const unsigned most = target.generation().branch < 520 ? 12 : 18;
    if (link >= most) return kInvalidArgument;
    if (target.device.model.nvlinks == 0 && target.device.links.empty()) return kNotSupported;
    const std::size_t present =
        std::max<std::size_t>(target.device.links.size(), target.device.model.nvlinks);
    if (link >= present) return kInvalidArgument;
    return body(target, link < target.device.links.size() ? target.device.links[link] : Link{});
  });
}

Code remote_pci(const char* name, Handle handle, unsigned link, void* out, std::size_t size) {
  return on_link(name, handle, link, [&](const Target& target, const Link& wire) {
    if (out == nullptr) return kInvalidArgument;
    if (!wire.active) return kNotSupported;
    const bool to_switch = wire.remote == Remote::switched;
    const PciAddress address =
        to_switch ? switch_address(wire.peer) : target.scenario().devices[wire.peer].pci;
    PciInfoV3 info{};
    info.domain = address.domain;
    info.bus = address.bus;
    info.device = address.device;
    info.pci_device_id =
        (to_switch ? 0x22A3U : target.scenario().devices[wire.peer].model.pci_device) << 16 | 0x10DE;
    std::snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "%s", pci_text(address, 4).c_str());
    std::snprintf(info.bus_id, sizeof info.bus_id, "%s", pci_text(address, 8).c_str());
    std::memcpy(out, &info, size);
    return kSuccess;
  });
}

unsigned nvlink_version(const Device& device) {
  switch (device.model.architecture) {
    case 5:
      return 2;
    case 6:
      return 2;
    case 7:
      return 3;
    case 9:
      return 4;
    case 10:
      return 5;
    default:
      return 1;
  }
}

unsigned numa_nodes(const Scenario& scenario) {
  unsigned nodes = 1;
  for (const Device& device : scenario.devices) nodes = std::max(nodes, device.numa_node + 1);
  return nodes;
}

}  // namespace

SIM_EXPORT Code nvmlDeviceGetTopologyCommonAncestor(Handle first, Handle second, unsigned* out) {
  return on_pair(__func__, first, second, [&](const Target& target, unsigned other) {
    if (out == nullptr) return kInvalidArgument;
    if (!target.device.supports(Reading::topology)) return kNotSupported;
    *out = target.scenario().pcie_level(target.index, other);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceOnSameBoard(Handle first, Handle second, int* out) {
  return on_pair(__func__, first, second, [&](const Target& target, unsigned other) {
    if (out == nullptr) return kInvalidArgument;
    *out = target.scenario().pcie_level(target.index, other) == 0 ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetTopologyNearestGpus(Handle handle, unsigned level, unsigned* count,
                                                 Handle* out) {
  return on_reading(__func__, handle, Reading::topology, [&](const Target& target) {
    if (count == nullptr) return kInvalidArgument;
    std::vector<Handle> found;
    for (unsigned i = 0; i < target.scenario().devices.size(); ++i)
      if (i != target.index && target.scenario().pcie_level(target.index, i) == level)
        found.push_back(handle_of(i, -1));
    const unsigned room = *count;
    *count = static_cast<unsigned>(found.size());
    if (out == nullptr) return kSuccess;  // asks for the number alone
    std::copy_n(found.begin(), std::min<std::size_t>(room, found.size()), out);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetP2PStatus(Handle first, Handle second, unsigned capability, unsigned* out) {
  return on_pair(__func__, first, second, [&](const Target& target, unsigned other) {
    if (out == nullptr || capability > 4) return kInvalidArgument;
    constexpr unsigned kOk = 0, kTopologyForbids = 3, kNo = 5;
    const bool linked = target.scenario().nvlinks_between(target.index, other) != 0;
    const bool near = target.scenario().pcie_level(target.index, other) <= 30;
    if (capability == 2)
      *out = linked ? kOk : kNo;
    else
      *out = linked || near ? kOk : kTopologyForbids;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetNvLinkState(Handle handle, unsigned link, unsigned* out) {
  return on_link(__func__, handle, link, [&](const Target&, const Link& wire) {
    if (out == nullptr) return kInvalidArgument;
    *out = wire.active ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetNvLinkVersion(Handle handle, unsigned link, unsigned* out) {
  return on_link(__func__, handle, link, [&](const Target& target, const Link&) {
    if (out == nullptr) return kInvalidArgument;
    *out = nvlink_version(target.device);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetNvLinkCapability(Handle handle, unsigned link, unsigned capability,
                                              unsigned* out) {
  return on_link(__func__, handle, link, [&](const Target&, const Link& wire) {
    if (out == nullptr || capability > 5) return kInvalidArgument;
    *out = wire.active ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetNvLinkRemotePciInfo(Handle handle, unsigned link, void* out) {
  return remote_pci(__func__, handle, link, out, sizeof(PciInfoV2));
}
SIM_EXPORT Code nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle handle, unsigned link, void* out) {
  return remote_pci(__func__, handle, link, out, sizeof(PciInfoV3));
}

SIM_EXPORT Code nvmlDeviceGetNvLinkRemoteDeviceType(Handle handle, unsigned link, unsigned* out) {
  return on_link(__func__, handle, link, [&](const Target&, const Link& wire) {
    if (out == nullptr) return kInvalidArgument;
    if (!wire.active) return kNotSupported;
    *out = static_cast<unsigned>(wire.remote);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetNumaNodeId(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::topology, out,
                     [](const Target& target) { return target.device.numa_node; });
}

SIM_EXPORT Code nvmlDeviceGetCpuAffinity(Handle handle, unsigned words, unsigned long* out) {
  return on_reading(__func__, handle, Reading::topology, [&](const Target& target) {
    if (out == nullptr || words == 0) return kInvalidArgument;
    std::fill_n(out, words, 0UL);
    const auto cpus = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF));
    const unsigned nodes = numa_nodes(target.scenario());
    for (unsigned cpu = 0; cpu < cpus && cpu / 64 < words; ++cpu)
      if (cpus < nodes || cpu * nodes / cpus == target.device.numa_node) out[cpu / 64] |= 1UL << cpu % 64;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetMemoryAffinity(Handle handle, unsigned words, unsigned long* out, unsigned) {
  return on_reading(__func__, handle, Reading::topology, [&](const Target& target) {
    if (out == nullptr || words == 0) return kInvalidArgument;
    std::fill_n(out, words, 0UL);
    if (target.device.numa_node / 64 < words)
      out[target.device.numa_node / 64] |= 1UL << target.device.numa_node % 64;
    return kSuccess;
  });
}

}  // namespace berth::sim
