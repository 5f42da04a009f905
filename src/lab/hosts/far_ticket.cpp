#include "berth/hosts/far_ticket.h"

#include "berth/base/fail.h"

namespace berth::hosts {

Result<FarTicket> find_far_ticket(const std::vector<LabHost>& hosts, std::string_view word) {
  // Looks in an empty ledger, so the only error is one of the word itself.
  if (const auto shape = ticket_named(Ledger{}, word); !shape && shape.error().code == ErrorCode::usage)
    return std::unexpected(shape.error());
  const Hosts seen = look_at_hosts(hosts);
  std::vector<FarTicket> found;
  std::string silent;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!seen[i]->report) silent += fmt::format("{}{}", silent.empty() ? "" : ", ", hosts[i].name);
    if (!seen[i]->report) continue;
    for (const Ticket& ticket : seen[i]->report->ledger.tickets)
      if (to_text(ticket.id).ends_with(word)) found.push_back({hosts[i], to_text(ticket.id)});
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    return fail(ErrorCode::failure, "no lease and no request on these hosts has the id {}{}", word,
                silent.empty() ? "" : fmt::format("; not known of {}, which do not answer", silent));
  // Of all hosts together: the same short name may stand on two.
  Ledger together;
  for (const FarTicket& each : found) {
    if (const auto id = ticket_id_from_text(each.id)) together.tickets.emplace_back().id = *id;
  }
  std::string all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all += fmt::format("{}{} on {}", all.empty() ? "" : ", ", short_name(together, together.tickets[i].id),
                       found[i].host.name);
  return fail(ErrorCode::usage, "{} could be {}; give more digits, or --host", word, all);
}

}  // namespace berth::hosts
