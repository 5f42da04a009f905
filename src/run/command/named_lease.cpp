#include "berth/command/named_lease.h"

#include "berth/base/fail.h"
#include "berth/command/environment.h"
#include "berth/command/open_session.h"
#include "berth/lease/look.h"
#include "berth/sys/environment.h"

namespace berth::command {
namespace {

struct FoundTicket {
  Ticket ticket;
  std::string name;
};

Result<FoundTicket> look_for(store::LeaseStore& store, std::string_view name, TicketPhase wanted) {
  BERTH_LET(auto books, store.look());
  leasing::name_users(books.ledger);
  BERTH_LET(const auto ticket, ticket_named(books.ledger, name, wanted));
  return FoundTicket{*ticket, short_name(books.ledger, ticket->id)};
}

Result<NamedLease> find_ticket_named(std::string_view name, TicketPhase wanted) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  BERTH_LET(auto domain, find_domain());
  auto found = look_for(*domain.store, name, wanted);
  while (!found && !domain.around.empty()) {
    static_cast<leasing::Level&>(domain) = std::move(domain.around.back());
    domain.around.pop_back();
    found = look_for(*domain.store, name, wanted);
  }
  if (!found) return std::unexpected(found.error());
  return NamedLease{std::move(domain), std::move(found->ticket), std::move(found->name)};
}

}  // namespace

Result<NamedLease> find_named_lease(const std::vector<std::string>& words) {
  if (words.size() > 1) return fail(ErrorCode::usage, "one lease at a time");
  const std::string_view name =
      words.empty() ? sys::variable("BERTH_LEASE") : std::string_view(words.front());
  if (name.empty()) return fail(ErrorCode::usage, "which lease? `berth list -l` has their ids");
  BERTH_LET(auto found, find_ticket_named(name, TicketPhase::granted));
  if (found.ticket.phase == TicketPhase::waiting)
    return fail(ErrorCode::failure, "{0} waits and holds nothing; berth cancel {0} takes it out of the queue",
                found.name);
  return found;
}

Result<NamedLease> find_named_request(const std::vector<std::string>& words) {
  if (words.size() != 1)
    return fail(ErrorCode::usage, "which request? one at a time; `berth queue` has their ids");
  BERTH_LET(auto found, find_ticket_named(words.front(), TicketPhase::waiting));
  if (found.ticket.phase == TicketPhase::granted)
    return fail(ErrorCode::failure, "{0} waits no more, it has its GPUs; berth release {0} ends the lease",
                found.name);
  return found;
}

}  // namespace berth::command
