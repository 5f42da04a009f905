#include "berth/history/model/observation.h"

#include <algorithm>

#include "berth/job/job.h"
#include "berth/usage/run_samples.h"
#include "berth/verdict/compliance.h"
#include "berth/verdict/outsiders.h"

namespace berth::history {
namespace {

template <class Number>
Reading<int> whole(const Reading<Number>& value, std::uint64_t unit = 1) {
  if (!value) return std::nullopt;
  return static_cast<int>((static_cast<std::uint64_t>(*value) + unit / 2) / unit);
}

DeviceSeen device_seen(const Device& device, bool is_stale, bool leased) {
  DeviceSeen seen{device.uuid, label(device), device.name, {}};
  seen.sample.leased_percent = leased ? 100 : 0;
  if (is_stale || device.state != DeviceState::ok) return seen;
  seen.sample.utilization_percent = whole(device.utilization_percent);
  seen.sample.memory_used_mib = whole(device.memory.used_bytes, 1U << 20U);
  seen.sample.temperature_c = device.temperature_c;
  seen.sample.power_w = whole(device.power_mw, 1000);
  // The card counts only the whole, and a part of it has no clocks of its own.
  if (device.mig) return seen;
  seen.energy_mj = device.energy_mj;
  if (device.throttle_reasons) seen.throttled = is_throttled(*device.throttle_reasons);
  return seen;
}

/// As `berth list` says "idle", but for one of the leases on a device.
Reading<bool> is_used(const ComplianceReport& report, std::string_view uuid) {
  for (const DeviceUse& use : report.devices) {
    if (use.device->uuid != uuid || !use.told) continue;
    if (!use.processes.empty()) return true;
    if (use.nameless.empty()) return false;
  }
  return std::nullopt;
}

Reading<bool> has_strangers(const Facts& facts, const Ticket& lease, const std::string& uuid) {
  const Device* device = find_device(facts.snapshot, uuid);
  if (device == nullptr || device->state != DeviceState::ok || !device->processes) return std::nullopt;
  bool is_any_nameless = false;
  for (const Process& process : *device->processes) {
    if (!is_stranger(process, {&lease}, facts)) continue;
    if (process.uid) return true;
    is_any_nameless = true;
  }
  return is_any_nameless ? std::nullopt : Reading<bool>(false);
}

}  // namespace

Observation observe(const Facts& facts, const Ledger& ledger, TimeOfLook at, std::int64_t every_s) {
  Observation observation{at, every_s, {}, {}};
  const bool is_stale = facts.snapshot.stale_reason.has_value();
  // Once for all leases: of thousands, each would look at all others.
  const LeasesByDevice leases(ledger);
  for (const Device& device : facts.snapshot.devices) {
    if (device.uuid.empty()) continue;
    observation.devices.push_back(device_seen(device, is_stale, !leases.on(device.uuid).empty()));
  }
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    LeaseSeen lease{ticket.id, ticket.since_s, ticket.user, {}};
    if (auto job = task_note_from_text(ticket.note)) lease.job = std::move(job->name);
    lease.wish = {ticket.joined_s, ticket.time_s, !ticket.shared, ticket.yield_s.has_value()};
    const ComplianceReport report = is_stale ? ComplianceReport() : compliance_of(ticket, ledger, facts);
    for (const std::string& uuid : ticket.devices) {
      const auto sharers = std::max<std::size_t>(1, leases.on(uuid).size());
      lease.devices.push_back({uuid, 1.0 / static_cast<double>(sharers), is_used(report, uuid),
                               is_stale ? std::nullopt : has_strangers(facts, ticket, uuid)});
    }
    observation.leases.push_back(std::move(lease));
  }
  return observation;
}

}  // namespace berth::history
