#include "berth/lease/look.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/request/request.h"
#include "berth/store/directory_store.h"
#include "berth/store/lease_directory.h"
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

}  // namespace berth::leasing

namespace berth {
namespace {

// An instance has no number: Slurm names it in the mask alone.
std::string_view allotted(const std::function<std::string_view(std::string_view name)>& variable) {
  for (const Vendor& vendor : vendors()) {
    const std::string_view mask = variable(vendor.mask_variable);
    if (!mask.empty() && !is_index(mask.substr(0, mask.find_first_of(",-")))) return mask;
  }
  return variable("SLURM_JOB_GPUS");
}

}  // namespace

std::optional<std::uint32_t> slurm_job_of(std::string_view text) {
  const auto number = number_from_text<std::uint32_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

Result<SlurmJob> slurm_job_from(const std::function<std::string_view(std::string_view name)>& variable) {
  SlurmJob job;
  const auto number = slurm_job_of(variable(kSlurmJobVariable));
  const auto uid = number_from_text<std::uint32_t>(variable("SLURM_JOB_UID"));
  if (!number || !uid)
    return fail(
        ErrorCode::usage,
        "this is for Slurm: slurmd starts it for a job, with SLURM_JOB_ID and SLURM_JOB_UID. Name a script "
        "that calls it as Prolog or Epilog in slurm.conf");
  job.number = *number;
  job.uid = *uid;
  job.gid = number_from_text<std::uint32_t>(variable("SLURM_JOB_GID"));
  const std::string_view gpus = allotted(variable);
  if (gpus.empty()) return job;
  auto named = selectors_from_text(gpus);
  if (!named)
    return std::unexpected(context(named.error(), fmt::format("the GPUs of Slurm's job {}", job.number)));
  job.gpus = *std::move(named);
  return job;
}

Result<std::vector<std::string>> devices_of_slurm(const std::vector<std::string>& gpus,
                                                  const std::vector<std::string>& listed) {
  if (listed.empty()) return gpus;
  std::vector<std::string> devices;
  for (const std::string& gpu : gpus) {
    const auto number = number_from_text<std::size_t>(gpu);
    if (number && *number >= listed.size())
      return fail(ErrorCode::usage,
                  "Slurm has allotted its GPU {}, and --gpus names {} only: name all that gres.conf has",
                  *number, listed.size());
    devices.push_back(number ? listed[*number] : gpu);
  }
  return devices;
}

}  // namespace berth

namespace berth::leasing {
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

namespace {

// nullopt: there is no such lease, or it is another user's.
Result<std::optional<Ticket>> own_lease(Domain& domain, TicketId id) {
  BERTH_LET(const auto books, domain.store->look());
  const Ticket* lease = find_ticket(books.ledger, id, TicketPhase::granted);
  if (lease == nullptr || lease->uid != ::geteuid()) return std::nullopt;
  return *lease;
}

// The lease that berth prolog has taken for the Slurm job of this process. nullopt: none.
Result<std::optional<Ticket>> lease_of_slurm(const Domain& domain) {
  const auto job = slurm_job_of(sys::variable(kSlurmJobVariable));
  if (!job) return std::nullopt;
  BERTH_LET(const auto books, domain.store->look());
  const auto found = std::ranges::find_if(books.ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::granted && ticket.uid == ::geteuid() && ticket.slurm_job == *job;
  });
  return found == books.ledger.tickets.end() ? std::nullopt : std::optional(*found);
}

// Goes one level down.
Result<void> enter(Domain& domain, const Ticket& lease) {
  BERTH_LET(auto inside, domain.store->inside(lease.id));
  Level inner{std::move(inside), lease.devices, domain.path_of(lease.id)};
  domain.around.push_back(std::exchange(static_cast<Level&>(domain), std::move(inner)));
  return {};
}

// The mask that is set, else all that could be.
std::string names_of_masks() {
  std::string set;
  for (const Vendor& vendor : vendors()) {
    const std::string name(vendor.mask_variable);
    if (std::getenv(name.c_str()) != nullptr) set += (set.empty() ? "" : " and ") + name;
  }
  return set.empty() ? std::string(vendors().front().mask_variable) : set;
}

// A directory that BERTH_DIR names was chosen by somebody who knows who else uses it.
void note_private_tmp(const store::DirectoryChoice& choice, Domain& domain) {
  const auto mounted = store::mounted_on_private_tmp(choice);
  if (!mounted) return;
  domain.is_unseen = true;
  domain.warnings.push_back(
      fmt::format("warning: {} is mounted on /tmp here, so the leases of others are not seen, and nothing is "
                  "leased; ask an admin to run `sudo berth init`",
                  *mounted));
}

}  // namespace

MaskVariables inherited_masks(std::string_view prefix) {
  MaskVariables found;
  for (const Vendor& vendor : vendors()) {
    for (const std::string_view name : {vendor.mask_variable, vendor.order_variable}) {
      const std::string variable = fmt::format("{}{}", prefix, name);
      const char* value = name.empty() ? nullptr : std::getenv(variable.c_str());
      if (value != nullptr) found.emplace(name, value);
    }
  }
  return found;
}

std::string Domain::path_of(TicketId lease) const {
  return lease_path.empty() ? to_text(lease) : fmt::format("{}/{}", lease_path, to_text(lease));
}

std::optional<TicketId> Domain::outermost() const {
  return ticket_id_from_text(std::string_view(lease_path).substr(0, lease_path.find('/')));
}

Domain machine_around(Domain domain) {
  if (domain.around.empty()) return domain;
  static_cast<Level&>(domain) = std::move(domain.around.front());
  domain.around.clear();
  return domain;
}

std::string Domain::ticket_of(TicketId lease) const {
  return fmt::format("{}/leases/{}", std::filesystem::absolute(store->path()).string(), to_text(lease));
}

Result<Domain> find_domain(const store::Warn& warn, InClaim in_claim) {
  const store::DirectoryChoice choice = store::choose_lease_directory();
  BERTH_LET(auto opened, store::DirectoryStore::open(choice, warn));
  Domain domain;
  domain.store = std::move(opened);
  domain.warnings = domain.store->notes();
  domain.masks = inherited_masks();
  if (choice.origin == store::DirectoryOrigin::fallback) note_private_tmp(choice, domain);

  const std::string_view value = sys::variable("BERTH_LEASE");
  if (value.empty()) {
    BERTH_LET(const auto allotted, lease_of_slurm(domain));
    if (allotted) BERTH_DO(enter(domain, *allotted));
    return domain;
  }
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto id = ticket_id_from_text(part);
    BERTH_LET(auto lease, id ? own_lease(domain, *id) : Result<std::optional<Ticket>>());
    // The job of Slurm has only the devices that Slurm has allotted.
    if (lease && lease->kept && lease->slurm_job == 0 && in_claim == InClaim::beside) {
      domain.masks = inherited_masks(kOuterMask);
      domain.beside = std::move(*lease);
      break;
    }
    if (lease) {
      BERTH_DO(enter(domain, *lease));
      continue;
    }
    // They came with a lease that is no more.
    domain.masks = inherited_masks(kOuterMask);
    domain.warnings.push_back(fmt::format(
        "the lease in BERTH_LEASE={} has ended, or is not yours; Berth ignores this variable and {}", value,
        names_of_masks()));
    break;
  }
  return domain;
}

}  // namespace berth::leasing
