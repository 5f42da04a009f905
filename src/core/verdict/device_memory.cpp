#include "berth/verdict/device_memory.h"

#include <algorithm>
#include <map>

#include "berth/request/selector.h"
#include "berth/verdict/outsiders.h"

namespace berth {
namespace {

constexpr std::uint64_t less(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

/// The users of a device's memory, and how much each has.
struct Shares {
  std::map<TicketId, std::uint64_t> of_leases;
  std::uint64_t of_leases_in_all = 0;
  std::uint64_t of_listed_outsiders = 0;
  std::uint64_t of_asker = 0;  ///< in no lease on the device; a new lease would have it too
};

Shares shares_of(const Device& device, const std::vector<const Ticket*>& leases, const Facts& facts) {
  Shares shares;
  if (!device.processes) return shares;
  for (const Process& process : *device.processes) {
    const std::uint64_t used = process.used_bytes.value_or(0);
    if (const Ticket* lease = lease_of(process, leases, facts)) {
      std::uint64_t& of_lease = shares.of_leases[lease->id];
      of_lease = sum_of_bytes(of_lease, used);
      shares.of_leases_in_all = sum_of_bytes(shares.of_leases_in_all, used);
    } else if (facts.own_processes.contains(process.pid)) {
      shares.of_asker = sum_of_bytes(shares.of_asker, used);
    } else {
      shares.of_listed_outsiders = sum_of_bytes(shares.of_listed_outsiders, used);
    }
  }
  return shares;
}

}  // namespace

bool takes_whole(const Ticket& lease, const Device& device) {
  const auto& devices = lease.devices;
  return !lease.shared || std::find(devices.begin(), devices.end(), device.uuid) == devices.end();
}

bool trusts_leases(const Device& device, const Facts& facts) {
  return std::ranges::any_of(facts.policy.trust_leases, [&](const std::string& selector) {
    return std::ranges::any_of(devices_named(selector, facts.snapshot), [&](std::size_t place) {
      const Device& named = facts.snapshot.devices[place];
      return named.uuid == device.uuid || (device.mig && named.uuid == device.mig->parent_uuid);
    });
  });
}

Reading<std::uint64_t> memory_in_use(const Memory& memory) {
  if (memory.kind == MemoryKind::unified) return std::nullopt;
  if (memory.used_bytes) return memory.used_bytes;
  if (!memory.total_bytes || !memory.free_bytes) return std::nullopt;
  return less(*memory.total_bytes, sum_of_bytes(memory.reserved_bytes.value_or(0), *memory.free_bytes));
}

Reading<Unexplained> unexplained_memory(const Device& device) {
  const Reading<std::uint64_t> used = memory_in_use(device.memory);
  if (!used || !device.processes) return std::nullopt;
  Unexplained result;
  std::uint64_t listed = 0;
  for (const Process& process : *device.processes) {
    listed = sum_of_bytes(listed, process.used_bytes.value_or(0));
    result.some_untold |= !process.used_bytes;
  }
  result.bytes = less(*used, listed);
  return result;
}

Reading<std::uint64_t> lendable_memory(const Device& device) {
  if (!device.memory.total_bytes) return std::nullopt;
  return less(*device.memory.total_bytes, device.memory.reserved_bytes.value_or(0));
}

Reading<std::uint64_t> free_for_lease(const Device& device, const Ledger& ledger, const Facts& facts) {
  const std::vector<const Ticket*> leases = leases_holding(device, ledger);
  const Memory& memory = device.memory;
  const Shares shares = shares_of(device, leases, facts);
  std::uint64_t promised_or_used = 0;
  for (const Ticket* lease : leases) {
    if (takes_whole(*lease, device)) return 0;
    const auto used = shares.of_leases.find(lease->id);
    const std::uint64_t counts =
        std::max(lease->promise_bytes, used == shares.of_leases.end() ? 0 : used->second);
    promised_or_used = sum_of_bytes(promised_or_used, counts);
  }
  if (memory.kind == MemoryKind::unified) {
    // The available memory of the machine does not contain what leases use already. It still
    // contains the rest of what they were promised.
    if (!memory.free_bytes) return std::nullopt;
    return less(sum_of_bytes(*memory.free_bytes, shares.of_asker),
                less(promised_or_used, shares.of_leases_in_all));
  }
  const Reading<std::uint64_t> lendable = lendable_memory(device);
  const Reading<std::uint64_t> used = memory_in_use(memory);
  if (!lendable || !used) return std::nullopt;
  // If the driver lists no processes, memory in use counts as that of the leases, up to what they
  // were promised.
  if (!device.processes && trusts_leases(device, facts))
    return less(*lendable, std::max(promised_or_used, *used));
  // If no listed process explains memory in use, this memory is not free: it counts as an
  // outsider's.
  const std::uint64_t of_outsiders = std::max(
      shares.of_listed_outsiders, less(*used, sum_of_bytes(shares.of_leases_in_all, shares.of_asker)));
  return less(*lendable, sum_of_bytes(promised_or_used, of_outsiders));
}

}  // namespace berth
