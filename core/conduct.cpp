#include "berth/core/conduct.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

bool has(const Ticket& lease, const Device& device) {
  return std::ranges::any_of(lease.devices, [&](const std::string& uuid) {
    return uuid == device.uuid || (device.mig && uuid == device.mig->parent_uuid);
  });
}

DeviceUse use_of(const Device& device, const Ticket& lease, const Facts& facts) {
  DeviceUse use{&device, has(lease, device), true, {}, {}};
  // Nothing computes on a lost one. What another that does not answer says of its processes is old.
  if (device.state == DeviceState::lost) return use;
  use.told = device.state == DeviceState::ok && device.processes;
  if (!use.told) return use;
  for (const Process& process : *device.processes) {
    if (process.kind == ProcessKind::graphics) continue;
    const auto owner = facts.process_leases.find(process.pid);
    if (owner == facts.process_leases.end()) {
      if (!process.uid) use.nameless.push_back(&process);
    } else if (owner->second == lease.id) {
      use.processes.push_back(&process);
    }
  }
  return use;
}

Conduct judged(const std::vector<DeviceUse>& devices) {
  const auto any = [&](auto&& holds) { return std::ranges::any_of(devices, holds); };
  const auto used = [](const DeviceUse& use) { return !use.processes.empty(); };
  if (any([&](const DeviceUse& use) { return !use.leased && used(use); })) return Conduct::strays;
  if (any([](const DeviceUse& use) { return !use.told; })) return Conduct::unknown;
  if (any(used)) return Conduct::keeps;
  return any([](const DeviceUse& use) { return !use.nameless.empty(); }) ? Conduct::unknown : Conduct::idle;
}

}  // namespace

std::string_view to_text(Conduct conduct) {
  constexpr std::array<std::string_view, 4> kTexts{"keeps", "strays", "idle", "unknown"};
  return kTexts[static_cast<std::size_t>(conduct)];
}

ConductReport conduct_of(const Ticket& lease, const Facts& facts) {
  ConductReport report;
  for (const Device& device : facts.snapshot.devices) {
    if (!device.mig && device.mig_enabled.value_or(false)) continue;
    DeviceUse use = use_of(device, lease, facts);
    if (use.leased || !use.told || !use.processes.empty()) report.devices.push_back(std::move(use));
  }
  report.conduct = facts.snapshot.stale_reason ? Conduct::unknown : judged(report.devices);
  return report;
}

}  // namespace berth
