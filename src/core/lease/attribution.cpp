#include "berth/lease/attribution.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "berth/device/device.h"
#include "berth/sys/process.h"

namespace berth::leasing {
namespace {

// Deeper than any real tree of processes; a /proc that changes while it is walked cannot make this
// endless.
constexpr int kDeepest = 256;

class SystemProcesses : public Processes {
 public:
  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override {
    return sys::process_stat(static_cast<pid_t>(pid));
  }
  std::optional<std::uint32_t> owner(std::uint32_t pid) override {
    return sys::process_owner(static_cast<pid_t>(pid));
  }
  std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) override {
    return sys::process_can_write(static_cast<pid_t>(pid), file);
  }
  std::optional<std::string> variable(std::uint32_t pid, const std::string& name) override {
    return sys::process_variable(static_cast<pid_t>(pid), name);
  }
};

}  // namespace

void Processes::climb(std::uint32_t pid, const std::function<bool(const UniqueProcess&)>& ends) {
  for (int depth = 0; depth < kDeepest && pid > 0; ++depth) {
    const auto seen = stat(pid);
    if (!seen || ends(seen->process)) return;
    pid = static_cast<std::uint32_t>(seen->parent);
  }
}

std::optional<sys::ProcessStat> ProcessesOfLook::stat(std::uint32_t pid) {
  const auto [known, is_new] = seen_.try_emplace(pid);
  if (is_new) known->second = processes_.stat(pid);
  return known->second;
}

Processes& system_processes() {
  static SystemProcesses processes;
  return processes;
}

namespace {

class Attributor {
 public:
  Attributor(const Ledger& ledger, store::LeaseStore& store, Processes& processes)
      : store_(store), processes_(processes) {
    for (const Ticket& ticket : ledger.tickets) {
      if (ticket.phase == TicketPhase::granted) leases_.push_back(&ticket);
    }
  }

  void add(const Device& device) {
    if (leases_.empty() || !device.processes) return;
    for (const Process& process : *device.processes) {
      if (found_.leases.contains(process.pid)) continue;
      Leases leases = known(process.pid);
      if (leases.empty()) {
        leases = assumed(process, device);
        if (!leases.empty()) found_.assumed.insert(process.pid);
      }
      for (const Ticket* lease : leases) found_.leases.emplace(process.pid, lease->id);
    }
  }

  Attribution result() && { return std::move(found_); }

 private:
  using Leases = std::vector<const Ticket*>;

  Leases known(std::uint32_t pid) {
    unreadable_ = false;
    Leases leases = by_ancestry(pid);
    if (leases.empty()) leases = by_open_file(pid);
    return leases.empty() ? by_environment(pid) : leases;
  }

  Leases by_ancestry(std::uint32_t pid) {
    Leases nearest;
    processes_.climb(pid, [&](const UniqueProcess& process) {
      for (const Ticket* lease : leases_) {
        const bool named = lease->taker == process || lease->job == process;
        // A ticket is its owner's word: it can make no other user's processes its own.
        if (named && processes_.owner(process.pid) == lease->uid) nearest.push_back(lease);
      }
      return !nearest.empty();
    });
    return nearest;
  }

  Leases by_open_file(std::uint32_t pid) {
    Leases shared;
    for (const Ticket* lease : leases_) {
      const auto file = store_.file_of(*lease);
      if (!file) continue;
      const auto open = processes_.can_write(pid, *file);
      if (!open) unreadable_ = true;
      if (!open) return {};
      if (*open) shared.push_back(lease);
    }
    return shared;
  }

  Leases by_environment(std::uint32_t pid) {
    const auto value = processes_.variable(pid, "BERTH_LEASE");
    if (!value) unreadable_ = true;
    if (!value) return {};
    if (value->empty()) return by_slurm_job(pid);
    const auto owner = processes_.owner(pid);
    const auto found = std::ranges::find_if(
        leases_, [&](const Ticket* lease) { return names_lease(*value, lease->id) && owner == lease->uid; });
    return found == leases_.end() ? Leases() : Leases{*found};
  }

  // A process that Slurm starts descends from no process of ours.
  Leases by_slurm_job(std::uint32_t pid) {
    if (std::ranges::all_of(leases_, [](const Ticket* lease) { return lease->slurm_job == 0; })) return {};
    const auto job = slurm_job_of(processes_.variable(pid, kSlurmJobVariable).value_or(""));
    const auto owner = processes_.owner(pid);
    const auto found = std::ranges::find_if(
        leases_, [&](const Ticket* lease) { return job && lease->slurm_job == *job && owner == lease->uid; });
    return found == leases_.end() ? Leases() : Leases{*found};
  }

  Leases assumed(const Process& process, const Device& device) {
    if (!unreadable_) return {};
    const auto owner = process.uid ? process.uid : processes_.owner(process.pid);
    const auto found = std::ranges::find_if(leases_, [&](const Ticket* lease) {
      return owner == lease->uid && std::ranges::find(lease->devices, device.uuid) != lease->devices.end();
    });
    return found == leases_.end() ? Leases() : Leases{*found};
  }

  store::LeaseStore& store_;
  Processes& processes_;
  Leases leases_;
  Attribution found_;
  bool unreadable_ = false;  // of the process looked at last: something of it may not be read
};

}  // namespace

Attribution attribute(const Snapshot& snapshot, const Ledger& ledger, store::LeaseStore& store,
                      Processes& processes) {
  Attributor attributor(ledger, store, processes);
  for (const Device& device : snapshot.devices) attributor.add(device);
  return std::move(attributor).result();
}

bool names_lease(std::string_view value, TicketId lease) {
  const std::string name = to_text(lease);
  while (!value.empty()) {
    const std::string_view part = value.substr(0, value.find('/'));
    if (part == name) return true;
    value.remove_prefix(std::min(part.size() + 1, value.size()));
  }
  return false;
}

}  // namespace berth::leasing
