#include "berth/verdict/verdict.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "berth/base/text.h"
#include "berth/request/request.h"

namespace berth {
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

bool computes_without_lease(const Process& process, const std::vector<const Ticket*>& leases,
                            const Facts& facts) {
  return !process.ending.value_or(false) && lacks_lease(process, leases, facts);
}

bool is_outsider(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return computes_without_lease(process, leases, facts) && !is_ignored(process, facts.policy);
}

bool is_leaving(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return process.ending.value_or(false) && lacks_lease(process, leases, facts) &&
         !is_ignored(process, facts.policy);
}

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

namespace {

constexpr std::string_view kHidden = "***";

/// "--api-key", "HF_TOKEN", "db.password": whether what belongs to this name is nobody else's
/// business.
bool names_secret(std::string_view word) {
  constexpr std::array<std::string_view, 7> kSecret{"key",    "token",      "secret",    "password",
                                                    "passwd", "passphrase", "credential"};
  const std::string name = lowered(word);
  return std::ranges::any_of(kSecret, [&](std::string_view secret) {
    const std::size_t at = name.rfind(secret);
    if (at == std::string::npos) return false;
    // "--tokenizer" and "--max-tokens" are about language.
    const std::string_view rest = std::string_view(name).substr(at + secret.size());
    const bool is_of_language =
        rest.starts_with("iz") || (rest == "s" && name.find("max") != std::string::npos);
    return secret != "token" || !is_of_language;
  });
}

/// "https://user:password@host"
std::string without_login(std::string_view word) {
  const std::size_t scheme = word.find("://");
  if (scheme == std::string_view::npos) return std::string(word);
  const std::size_t begin = scheme + 3;
  const std::string_view authority = word.substr(begin, word.find('/', begin) - begin);
  const std::size_t login = authority.rfind('@');
  if (login == std::string_view::npos) return std::string(word);
  return std::string(word.substr(0, begin)) + std::string(kHidden) + std::string(word.substr(begin + login));
}

/// Goes through a command word by word.
class SecretMask {
 public:
  std::string told(std::string_view word) {
    if (hides_next_ && !word.starts_with('-')) {
      hides_next_ = lowered(word) == "bearer" || lowered(word) == "basic";
      return std::string(hides_next_ ? word : kHidden);
    }
    hides_next_ = false;
    for (const char sign : {'=', ':'}) {
      const std::size_t end = word.find(sign);
      if (end == std::string_view::npos || !names_secret(word.substr(0, end))) continue;
      hides_next_ = end + 1 == word.size();
      return std::string(word.substr(0, end + 1)) + (hides_next_ ? "" : std::string(kHidden));
    }
    const std::string name = lowered(word);
    hides_next_ =
        (word.starts_with('-') && word.find_first_of("=:") == std::string_view::npos && names_secret(word)) ||
        name.ends_with("authorization:") || name == "bearer";
    return without_login(word);
  }

 private:
  bool hides_next_ = false;
};

std::string program_of(std::string_view command) {
  std::string_view program = command.substr(0, command.find(' '));
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  return std::string(program);
}

}  // namespace

std::string told_command(std::string_view command, CommandVisibility telling) {
  if (telling == CommandVisibility::none) return {};
  if (telling == CommandVisibility::program) return program_of(command);
  std::string text;
  SecretMask mask;
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = std::min(command.find(' ', at), command.size());
    text += mask.told(command.substr(at, end - at));
    if (end < command.size()) text += ' ';
    at = end + 1;
  }
  return text;
}

void tell_commands(Facts& facts, Ledger& ledger, std::optional<std::uint32_t> own) {
  const CommandVisibility telling = facts.policy.commands;
  for (Device& device : facts.snapshot.devices) {
    if (!device.processes) continue;
    for (Process& process : *device.processes) {
      if (own && process.uid == *own) continue;
      const bool is_known = telling == CommandVisibility::none && is_ignored(process, facts.policy);
      process.command = told_command(process.command, is_known ? CommandVisibility::program : telling);
    }
  }
  for (std::vector<Ticket>* tickets : {&ledger.tickets, &ledger.ended}) {
    for (Ticket& ticket : *tickets) {
      if (!own || ticket.uid != *own) ticket.command = told_command(ticket.command, telling);
    }
  }
}

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
