#include "berth/core/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth {
namespace {

/// The verdicts that are free, on a candidate of mine, and on none of an earlier rival.
std::vector<Verdict> open_to(const Ticket& mine, const std::vector<const Ticket*>& rivals,
                             const std::vector<Verdict>& verdicts) {
  std::vector<Verdict> open;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.free() || !is_candidate(mine, verdict.uuid)) continue;
    const bool wanted_before = std::any_of(rivals.begin(), rivals.end(), [&](const Ticket* rival) {
      return is_candidate(*rival, verdict.uuid);
    });
    if (!wanted_before) open.push_back(verdict);
  }
  return open;
}

}  // namespace

std::vector<const Ticket*> rivals_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& passed_over) {
  std::vector<const Ticket*> rivals;
  for (const Ticket& other : ledger.tickets) {
    if (other.phase != TicketPhase::waiting || other.id >= mine.id || passed_over.contains(other.id))
      continue;
    if (are_rivals(mine, other)) rivals.push_back(&other);
  }
  std::sort(rivals.begin(), rivals.end(), [](const Ticket* a, const Ticket* b) { return a->id < b->id; });
  return rivals;
}

Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& passed_over) {
  const Ticket* mine = find_ticket(ledger, me);
  if (!mine || mine->phase != TicketPhase::waiting) {
    return fail(ErrorCode::failure, fmt::format("ticket {} does not wait", to_text(me)));
  }
  Result<std::vector<Verdict>> verdicts = judge(request, ledger, facts);
  if (!verdicts) return std::unexpected(verdicts.error());
  const std::vector<const Ticket*> rivals = rivals_before(*mine, ledger, passed_over);
  const std::vector<Verdict> open = open_to(*mine, rivals, *verdicts);
  if (open.size() >= request.count) return Granted{choose(request, open, facts.snapshot)};
  if (!rivals.empty()) return Behind{rivals.back()->id};
  return Blocked{*std::move(verdicts)};
}

}  // namespace berth
