// Event sets, which have what the scenario adds to `xid_events` after a client has registered, and
// otherwise wait as long as they are told: a double that returned at once would make its clients
// spin. And the generic field values.
#include <time.h>

#include <cerrno>
#include <map>

#include "nvml/call.h"

namespace berth::sim {
namespace {

constexpr std::uintptr_t kEventSetMark = 0x53494D4500000001;
constexpr std::uint64_t kSupportedEvents = 0x1B;  // ECC, Xid, clock changes
constexpr std::uint64_t kXidEvent = 8;

// How many of the Xids of each device its client has had, by index. Only registered devices are
// there.
std::map<unsigned, std::size_t>& taken() {
  static auto& counts = *new std::map<unsigned, std::size_t>();
  return counts;
}

// Leaves what only the newer form of the struct has.
bool take_xid(const Scenario& scenario, EventData& event) {
  for (auto& [index, count] : taken()) {
    if (index >= scenario.devices.size() || count >= scenario.devices[index].xid_events.size()) continue;
    event.device = handle_of(index, -1);
    event.type = kXidEvent;
    event.data = scenario.devices[index].xid_events[count++];
    return true;
  }
  return false;
}

Code wait(const char* name, Handle set, EventData* data, unsigned timeout_ms) {
  Code code = on_system(name, [&](World& world) {
    if (data == nullptr || set != reinterpret_cast<Handle>(kEventSetMark)) return kInvalidArgument;
    if (take_xid(world.scenario(), *data)) return kSuccess;
    for (const Device& device : world.scenario().devices)
      if (device.lost) return kGpuLost;
    return kTimeout;
  });
  if (code != kTimeout) return code;
  timespec left{static_cast<time_t>(timeout_ms / 1000), static_cast<long>(timeout_ms % 1000 * 1'000'000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  return code;
}

struct Field {
  std::uint32_t type = 1;  // u32
  std::uint64_t value = 0;
  bool known = false;
};

Field number(std::uint64_t value, bool known = true, std::uint32_t type = 1) {
  return {type, value, known};
}

Field field_of(const Target& target, unsigned id) {
  const Device& device = target.device;
  const bool retired = device.supports(Reading::retired);
  const bool remapped = device.supports(Reading::remapped);
  switch (id) {
    case 4:
      return number(device.ecc_uncorrected, device.ecc && device.supports(Reading::ecc), 3);
    case 29:
      return number(device.retired_single, retired);
    case 30:
      return number(device.retired_double, retired);
    case 31:
      return number(device.retired_pending, retired);
    case 82:
      return number(device.temperature + 8, device.model.ecc && device.supports(Reading::temperature));
    case 83:
      return number(energy_mj(device), device.supports(Reading::energy), 3);
    case 91:
      return number(device.links.size(), device.supports(Reading::nvlink));
    case 142:
      return number(device.remapped_corrected, remapped);
    case 143:
      return number(device.remapped_uncorrected, remapped);
    case 144:
      return number(device.remap_pending, remapped);
    case 145:
      return number(device.remap_failure, remapped);
    case 185:
      return number(device.power_mw, device.supports(Reading::power));
    case 186:
      return number(device.power_mw, device.supports(Reading::power));
    case 230:
      return number(device.recovery_action, target.generation().branch >= 570);
    default:
      return {};
  }
}

}  // namespace

SIM_EXPORT Code nvmlDeviceGetFieldValues(Handle handle, int count, FieldValue* values) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (values == nullptr || count <= 0) return kInvalidArgument;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; ++i) {
      const Field field = target.instance == nullptr ? field_of(target, values[i].field) : Field{};
      values[i].time_us = now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
      values[i].latency_us = 0;
      values[i].type = field.type;
      values[i].value = field.value;
      values[i].result = field.known ? kSuccess : kNotSupported;
    }
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlEventSetCreate(Handle* out) {
  return on_system(__func__, [&](World&) {
    if (out == nullptr) return kInvalidArgument;
    taken().clear();
    *out = reinterpret_cast<Handle>(kEventSetMark);
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlEventSetFree(Handle set) {
  return on_system(__func__, [&](World&) {
    return set == reinterpret_cast<Handle>(kEventSetMark) ? kSuccess : kInvalidArgument;
  });
}

SIM_EXPORT Code nvmlDeviceGetSupportedEventTypes(Handle handle, std::uint64_t* out) {
  return read_number(__func__, handle, Reading::events, out, [](const Target&) { return kSupportedEvents; });
}

SIM_EXPORT Code nvmlDeviceRegisterEvents(Handle handle, std::uint64_t mask, Handle set) {
  return on_reading(__func__, handle, Reading::events, [&](const Target& target) {
    if (set != reinterpret_cast<Handle>(kEventSetMark)) return kInvalidArgument;
    if ((mask & ~kSupportedEvents) != 0) return kNotSupported;
    if ((mask & kXidEvent) != 0) taken().emplace(target.index, target.device.xid_events.size());
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlEventSetWait(Handle set, EventData* data, unsigned timeout_ms) {
  return wait(__func__, set, data, timeout_ms);
}
SIM_EXPORT Code nvmlEventSetWait_v2(Handle set, EventData* data, unsigned timeout_ms) {
  const Code code = wait(__func__, set, data, timeout_ms);
  if (code == kSuccess) data->gpu_instance = data->compute_instance = ~0U;
  return code;
}

}  // namespace berth::sim
