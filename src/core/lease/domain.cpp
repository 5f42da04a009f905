#include "berth/lease/domain.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "berth/device/device.h"
#include "berth/store/directory_store.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/process.h"

namespace berth::leasing {
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
