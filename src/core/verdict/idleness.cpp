#include "berth/verdict/idleness.h"

#include <algorithm>

#include "berth/verdict/outsiders.h"

namespace berth {

Reading<bool> is_idle(const Device& device, const std::vector<const Ticket*>& holding, const Facts& facts) {
  if (holding.empty() || device.state != DeviceState::ok || !device.processes) return std::nullopt;
  return std::ranges::none_of(*device.processes, [&](const Process& process) {
    return process.kind != ProcessKind::graphics && lease_of(process, holding, facts) != nullptr;
  });
}

void IdleTimes::look(const Ledger& ledger, const Facts& facts) {
  std::map<Key, Seen> now;
  const LeasesByDevice leases(ledger);
  for (const Device& device : facts.snapshot.devices) {
    const std::vector<const Ticket*> holding = leases_holding(device, leases);
    const Reading<bool> idle = is_idle(device, holding, facts);
    if (!idle) continue;
    const Ticket& lease = *holding.back();
    const Key key{lease.id, device.uuid};
    const auto before = seen_.find(key);
    Seen seen{*idle, 0};
    if (before == seen_.end()) {
      if (!first_) seen.since_s = lease.since_s;
    } else if (before->second.idle) {
      seen.since_s = before->second.since_s;
    } else {
      seen.since_s = facts.snapshot.taken_at_ns / 1'000'000'000;
    }
    now.emplace(key, seen);
  }
  seen_ = std::move(now);
  first_ = false;
}

void IdleTimes::adopt(const Device& device, const std::vector<const Ticket*>& holding, std::int64_t since_s) {
  if (!holding.empty()) seen_[{holding.back()->id, device.uuid}] = {true, since_s};
}

Reading<std::int64_t> IdleTimes::since(const Device& device,
                                       const std::vector<const Ticket*>& holding) const {
  const auto seen = holding.empty() ? seen_.end() : seen_.find({holding.back()->id, device.uuid});
  if (seen == seen_.end() || !seen->second.idle || seen->second.since_s == 0) return std::nullopt;
  return seen->second.since_s;
}

}  // namespace berth
