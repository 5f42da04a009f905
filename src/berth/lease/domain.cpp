#include "berth/lease/domain.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/slurm/model/slurm_job.h"
#include "berth/store/directory_store.h"
#include "berth/sys/environment.h"

namespace berth::leasing {
namespace {

// nullopt: there is no such lease, or it is another user's.
Result<std::optional<Ticket>> own_lease(Place& place, TicketId id) {
  BERTH_LET(const auto books, place.store->look());
  const Ticket* lease = find_ticket(books.ledger, id);
  if (lease == nullptr || lease->phase != TicketPhase::granted || lease->uid != ::geteuid())
    return std::nullopt;
  return *lease;
}

// What berth prolog has leased for the job of Slurm that this process is of. nullopt: nothing.
Result<std::optional<Ticket>> lease_of_slurm(const Place& place) {
  const auto job = slurm_job_of(sys::variable(kSlurmJobVariable));
  if (!job) return std::nullopt;
  BERTH_LET(const auto books, place.store->look());
  const auto found = std::ranges::find_if(books.ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::granted && ticket.uid == ::geteuid() && ticket.slurm_job == *job;
  });
  return found == books.ledger.tickets.end() ? std::nullopt : std::optional(*found);
}

// One level down.
Result<void> enter(Place& place, const Ticket& lease) {
  BERTH_LET(auto inside, place.store->inside(lease.id));
  Level inner{std::move(inside), lease.devices, place.path_of(lease.id)};
  place.around.push_back(std::exchange(static_cast<Level&>(place), std::move(inner)));
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

std::string Place::path_of(TicketId lease) const {
  return lease_path.empty() ? to_text(lease) : fmt::format("{}/{}", lease_path, to_text(lease));
}

std::optional<TicketId> Place::outermost() const {
  return ticket_id_from_text(std::string_view(lease_path).substr(0, lease_path.find('/')));
}

Place machine_around(Place place) {
  if (place.around.empty()) return place;
  static_cast<Level&>(place) = std::move(place.around.front());
  place.around.clear();
  return place;
}

std::string Place::ticket_of(TicketId lease) const {
  return fmt::format("{}/leases/{}", std::filesystem::absolute(store->path()).string(), to_text(lease));
}

Result<Place> find_place(const store::Tell& tell, InClaim in_claim) {
  BERTH_LET(auto opened, store::DirectoryStore::open(store::choose_lease_directory(), tell));
  Place place;
  place.store = std::move(opened);
  place.warnings = place.store->notes();
  place.masks = inherited_masks();

  const std::string_view value = sys::variable("BERTH_LEASE");
  if (value.empty()) {
    BERTH_LET(const auto allotted, lease_of_slurm(place));
    if (allotted) BERTH_DO(enter(place, *allotted));
    return place;
  }
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto id = ticket_id_from_text(part);
    BERTH_LET(auto lease, id ? own_lease(place, *id) : Result<std::optional<Ticket>>());
    // What Slurm has allotted is all that there is for its job.
    if (lease && lease->kept && lease->slurm_job == 0 && in_claim == InClaim::beside) {
      place.masks = inherited_masks(kOuterMask);
      place.beside = std::move(*lease);
      break;
    }
    if (lease) {
      BERTH_DO(enter(place, *lease));
      continue;
    }
    // They came with a lease that is no more.
    place.masks = inherited_masks(kOuterMask);
    place.warnings.push_back(fmt::format(
        "the lease in BERTH_LEASE={} has ended, or is not yours; Berth ignores this variable and {}", value,
        names_of_masks()));
    break;
  }
  return place;
}

}  // namespace berth::leasing
