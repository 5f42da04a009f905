#include "berth/verdict/compliance.h"

#include <algorithm>

#include "berth/verdict/device_memory.h"
#include "berth/verdict/outsiders.h"

namespace berth {
namespace {

bool has(const Ticket& lease, const Device& device) {
  return std::ranges::any_of(lease.devices, [&](const std::string& uuid) {
    return uuid == device.uuid || (device.mig && uuid == device.mig->parent_uuid);
  });
}

DeviceUse use_of(const Device& device, const Ticket& lease, const Ledger& ledger, const Facts& facts) {
  DeviceUse use{&device, has(lease, device), true, {}, {}};
  // Nothing computes on a lost one. What another that does not answer says of its processes is old.
  if (device.state == DeviceState::lost) return use;
  use.told = device.state == DeviceState::ok && device.processes;
  if (!use.told) return use;
  for (const Process& process : *device.processes) {
    if (process.kind == ProcessKind::graphics) continue;
    const auto [first, last] = facts.process_leases.equal_range(process.pid);
    if (first == last && !process.uid) use.nameless.push_back(&process);
    const bool is_its = std::any_of(first, last, [&](const auto& known) { return known.second == lease.id; });
    // Of two leases of one program each has its own devices.
    if (is_its && (use.leased || lease_of(process, leases_holding(device, ledger), facts) == nullptr))
      use.processes.push_back(&process);
  }
  return use;
}

Compliance judged(const std::vector<DeviceUse>& devices) {
  const auto any = [&](auto&& holds) { return std::ranges::any_of(devices, holds); };
  const auto used = [](const DeviceUse& use) { return !use.processes.empty(); };
  if (any([&](const DeviceUse& use) { return !use.leased && used(use); })) return Compliance::strays;
  if (any([](const DeviceUse& use) { return !use.told; })) return Compliance::unknown;
  if (any(used)) return Compliance::keeps;
  return any([](const DeviceUse& use) { return !use.nameless.empty(); }) ? Compliance::unknown
                                                                         : Compliance::idle;
}

}  // namespace

ComplianceReport compliance_of(const Ticket& lease, const Ledger& ledger, const Facts& facts) {
  ComplianceReport report;
  for (const Device& device : facts.snapshot.devices) {
    if (!device.mig && device.mig_enabled.value_or(false)) continue;
    DeviceUse use = use_of(device, lease, ledger, facts);
    if (use.leased || !use.told || !use.processes.empty()) report.devices.push_back(std::move(use));
  }
  report.compliance = facts.snapshot.stale_reason ? Compliance::unknown : judged(report.devices);
  return report;
}

std::optional<Overrun> overrun_of(const Ticket& lease, const ComplianceReport& report) {
  std::optional<Overrun> most;
  if (!lease.shared) return most;
  for (const DeviceUse& use : report.devices) {
    std::uint64_t used = 0;
    for (const Process* process : use.processes) used = sum_of_bytes(used, process->used_bytes.value_or(0));
    if (use.leased && used > std::max(lease.promise_bytes, most ? most->used_bytes : 0))
      most = Overrun{use.device, used};
  }
  return most;
}

}  // namespace berth
