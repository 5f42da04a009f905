#include "berth/lease/place.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "berth/store/directory_store.h"

namespace berth::leasing {
namespace {

// One level down. False: there is no such lease, or it is another user's.
Result<bool> enter(Place& place, TicketId id) {
  BERTH_LET(const auto books, place.store->look());
  const Ticket* lease = find_ticket(books.ledger, id);
  if (lease == nullptr || lease->phase != TicketPhase::granted || lease->uid != ::geteuid()) return false;
  BERTH_LET(auto inner, place.store->inside(id));
  place.within = lease->devices;
  place.lease_path = place.path_of(id);
  place.store = std::move(inner);
  return true;
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

MaskVariables inherited_masks() {
  MaskVariables found;
  for (const Vendor& vendor : vendors()) {
    for (const std::string_view name : {vendor.mask_variable, vendor.order_variable}) {
      // They are literals, so a NUL byte ends them.
      const char* value = name.empty() ? nullptr : std::getenv(name.data());
      if (value != nullptr) found.emplace(name, value);
    }
  }
  return found;
}

std::string Place::path_of(TicketId lease) const {
  return lease_path.empty() ? to_text(lease) : fmt::format("{}/{}", lease_path, to_text(lease));
}

Result<Place> find_place(const store::Tell& tell) {
  BERTH_LET(auto opened, store::DirectoryStore::open(store::choose_lease_directory(), tell));
  Place place;
  place.store = std::move(opened);
  place.warnings = place.store->notes();

  const char* value = std::getenv("BERTH_LEASE");
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto id = ticket_id_from_text(part);
    BERTH_LET(const auto entered, id ? enter(place, *id) : Result<bool>(false));
    if (entered) continue;
    place.believe_mask = false;
    place.warnings.push_back(
        fmt::format("BERTH_LEASE={} names no live lease of yours; it is ignored, and {} with it", value,
                    names_of_masks()));
    break;
  }
  return place;
}

}  // namespace berth::leasing
