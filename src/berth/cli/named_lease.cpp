#include "berth/cli/named_lease.h"

#include <fmt/format.h>

#include "berth/cli/environment.h"
#include "berth/cli/question.h"
#include "berth/lease/look.h"
#include "berth/store/directory_store.h"

namespace berth::cli {
namespace {

Result<Ticket> look_for(store::LeaseStore& store, std::string_view name) {
  BERTH_LET(auto books, store.look());
  leasing::name_users(books.ledger);
  BERTH_LET(const auto ticket, ticket_named(books.ledger, name));
  return *ticket;
}

}  // namespace

Result<NamedLease> find_named_lease(const std::vector<std::string>& words) {
  if (words.size() > 1) return fail(ErrorCode::usage, "one lease at a time");
  std::string_view name = words.empty() ? variable("BERTH_LEASE") : std::string_view(words.front());
  if (name.empty()) return fail(ErrorCode::usage, "which lease? `berth list` has their ids");
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  BERTH_LET(auto place, find_place());
  auto ticket = look_for(*place.store, name);
  if (!ticket && place.within) {
    BERTH_LET(auto machine, store::DirectoryStore::open(store::choose_lease_directory(), tell));
    place = leasing::Place();
    place.store = std::move(machine);
    ticket = look_for(*place.store, name);
  }
  if (!ticket) return std::unexpected(ticket.error());
  if (ticket->phase == TicketPhase::waiting)
    return fail(ErrorCode::failure,
                fmt::format("{} waits and holds nothing; it leaves the queue when process {} ends",
                            to_text(ticket->id), ticket->pid));
  return NamedLease{std::move(place), std::move(*ticket)};
}

}  // namespace berth::cli
