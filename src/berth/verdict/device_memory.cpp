#include "berth/verdict/device_memory.h"

#include <algorithm>
#include <map>

#include "berth/request/selector.h"

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

namespace {

std::string_view program_name(const Process& process) {
  std::string_view program = std::string_view(process.command).substr(0, process.command.find(' '));
  if (const std::size_t slash = program.rfind('/'); slash != std::string_view::npos)
    program.remove_prefix(slash + 1);
  return program;
}

}  // namespace

bool is_of_mps(const Process& process) {
  const std::string_view program = program_name(process);
  return program == "nvidia-cuda-mps-server" || program == "nvidia-cuda-mps-control";
}

bool has_mps(const Device& device) {
  return device.processes && std::ranges::any_of(*device.processes, is_of_mps);
}

bool is_ignored(const Process& process, const SitePolicy& policy) {
  const auto named = [](const std::vector<std::string>& names, std::string_view name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_of_mps(process) || named(policy.ignored_users, process.user) ||
         named(policy.ignored_programs, program_name(process));
}

bool takes_whole(const Ticket& lease, const Device& device) {
  const auto& devices = lease.devices;
  return !lease.shared || std::find(devices.begin(), devices.end(), device.uuid) == devices.end();
}

const Ticket* lease_of(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  const auto its_leases = facts.process_leases.equal_range(process.pid);
  const auto lease = std::ranges::find_if(leases, [&](const Ticket* ticket) {
    return std::any_of(its_leases.first, its_leases.second,
                       [&](const auto& known) { return known.second == ticket->id; });
  });
  return lease == leases.end() ? nullptr : *lease;
}

namespace {

bool lacks_lease(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return process.kind != ProcessKind::graphics && lease_of(process, leases, facts) == nullptr &&
         !facts.own_processes.contains(process.pid) && !is_of_mps(process);
}

}  // namespace

bool is_stranger(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return !process.ending.value_or(false) && lacks_lease(process, leases, facts);
}

bool is_outsider(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return is_stranger(process, leases, facts) && !is_ignored(process, facts.policy);
}

bool is_leaving(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return process.ending.value_or(false) && lacks_lease(process, leases, facts) &&
         !is_ignored(process, facts.policy);
}

bool trusts_leases(const Device& device, const Facts& facts) {
  return std::ranges::any_of(facts.policy.trust_leases, [&](const std::string& selector) {
    return std::ranges::any_of(devices_named(selector, facts.snapshot), [&](std::size_t place) {
      const Device& named = facts.snapshot.devices[place];
      return named.uuid == device.uuid || (device.mig && named.uuid == device.mig->parent_uuid);
    });
  });
}

namespace {

/// `of_parent`: the leases of the GPU that a MIG instance is a part of.
std::vector<const Ticket*> joined(std::vector<const Ticket*> leases,
                                  const std::vector<const Ticket*>& of_parent) {
  for (const Ticket* lease : of_parent) {
    if (std::find(leases.begin(), leases.end(), lease) == leases.end()) leases.push_back(lease);
  }
  return leases;
}

}  // namespace

std::vector<const Ticket*> leases_holding(const Device& device, const Ledger& ledger) {
  std::vector<const Ticket*> leases = leases_on(ledger, device.uuid);
  if (!device.mig) return leases;
  return joined(std::move(leases), leases_on(ledger, device.mig->parent_uuid));
}

std::vector<const Ticket*> leases_holding(const Device& device, const LeasesByDevice& leases) {
  if (!device.mig) return leases.on(device.uuid);
  return joined(leases.on(device.uuid), leases.on(device.mig->parent_uuid));
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
