#include "berth/queue/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "berth/queue/gap.h"
#include "berth/queue/queue_order.h"

namespace berth {
namespace {

/// The verdicts that are free, on a candidate of mine.
std::vector<Verdict> free_for(const Ticket& mine, const std::vector<Verdict>& verdicts) {
  std::vector<Verdict> free;
  std::ranges::copy_if(verdicts, std::back_inserter(free), [&](const Verdict& verdict) {
    return verdict.free() && is_candidate(mine, verdict.uuid);
  });
  return free;
}

/// The verdicts as another process would give them: without the conditions, of which a ticket tells
/// only the words, and without the earlier runs of its user.
std::vector<Verdict> as_others_see(const Request& request, const Ledger& ledger, const Facts& facts) {
  if (request.conditions.empty() && facts.passed_over.empty()) return {};
  Request plain = request;
  plain.conditions.clear();
  Facts of_anybody = facts;
  of_anybody.passed_over.clear();
  return judge(plain, ledger, of_anybody).value_or(std::vector<Verdict>{});
}

/// The tickets that get some of the free devices, each once.
std::vector<TicketId> owners(const Gap& gap, const std::vector<Verdict>& free) {
  std::set<TicketId> owners;
  for (const Verdict& verdict : free) {
    for (const TicketId id : gap.owners(verdict)) owners.insert(id);
  }
  return {owners.begin(), owners.end()};
}

bool counts_as_waiting(const Ticket& ticket, const std::set<TicketId>& passed_over) {
  return ticket.phase == TicketPhase::waiting && !ticket.held_back && !passed_over.contains(ticket.id);
}

/// The leases, this ticket, and the tickets that came before all tickets that were not read.
/// nullopt: the turn of a ticket that was not read may be before one of these.
std::optional<Ledger> those_in_front(const Ledger& ledger, const Ticket& mine) {
  if (ledger.unread == 0 || mine.yield_s) return std::nullopt;
  Ledger front;
  front.odd = ledger.odd;
  front.ended = ledger.ended;
  for (const Ticket& ticket : ledger.tickets) {
    const bool waits = ticket.phase == TicketPhase::waiting;
    if (waits && may_go_past(ticket)) return std::nullopt;
    if (!waits || ticket.id == mine.id || ticket.id < ledger.first_unread) front.tickets.push_back(ticket);
  }
  return front;
}

bool guards(const Ticket& rival, const std::string& candidate) {
  return candidate == kEveryDevice
             ? std::ranges::find(rival.candidates, kEveryDevice) != rival.candidates.end()
             : is_candidate(rival, candidate);
}

// Waiters watch for those who came later, never the other way round, so that the graph of watchers
// has no cycle.
Behind behind_one_of(const Ticket& mine, const std::vector<const Ticket*>& rivals,
                     const std::vector<const Ticket*>& guarding) {
  if (guarding.empty()) return Behind{rivals.back()->id, mine.candidates};
  const auto guards_all = [&](const Ticket* rival) {
    return std::ranges::all_of(mine.candidates, [&](const std::string& one) { return guards(*rival, one); });
  };
  const auto nearest_first = std::views::reverse(guarding);
  const auto found = std::ranges::find_if(nearest_first, guards_all);
  const Ticket& rival = found == nearest_first.end() ? *guarding.back() : **found;
  Behind waits{rival.id};
  std::ranges::copy_if(mine.candidates, std::back_inserter(waits.unguarded),
                       [&](const std::string& one) { return !guards(rival, one); });
  return waits;
}

}  // namespace

std::vector<const Ticket*> rivals_before(const Ticket& mine, const Ledger& ledger, Moment now,
                                         const std::set<TicketId>& passed_over) {
  std::vector<const Ticket*> rivals;
  for (const Ticket* other : waiting_in_order(ledger, passed_over, now, &mine)) {
    if (other->id == mine.id) break;
    if (counts_as_waiting(*other, passed_over) && are_rivals(mine, *other)) rivals.push_back(other);
  }
  return rivals;
}

std::vector<const Ticket*> guards_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& passed_over) {
  std::vector<const Ticket*> guarding;
  for (const Ticket& other : ledger.tickets) {
    if (counts_as_waiting(other, passed_over) && comes_before(other, mine) && are_rivals(mine, other))
      guarding.push_back(&other);
  }
  std::ranges::sort(guarding, [](const Ticket* a, const Ticket* b) { return comes_before(*a, *b); });
  return guarding;
}

bool is_enough_free(const Ticket& mine, const Ledger& ledger, const Facts& facts, const Request& request) {
  const auto enough = [&](const std::vector<Verdict>& verdicts) {
    return free_for(mine, verdicts).size() >= request.count;
  };
  return enough(judge(request, ledger, facts).value_or(std::vector<Verdict>{})) ||
         enough(as_others_see(request, ledger, facts));
}

Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& passed_over, Moment now) {
  const Ticket* mine = find_ticket(ledger, me);
  if (!mine || mine->phase != TicketPhase::waiting) {
    return fail(ErrorCode::failure, fmt::format("ticket {} does not wait", to_text(me)));
  }
  BERTH_LET(auto verdicts, judge(request, ledger, facts));
  const std::vector<const Ticket*> rivals = request.adopts_running_process
                                                ? std::vector<const Ticket*>{}
                                                : rivals_before(*mine, ledger, now, passed_over);
  std::vector<Verdict> free = free_for(*mine, verdicts);
  const bool is_enough = free.size() >= request.count;
  if (!is_enough) free = free_for(*mine, as_others_see(request, ledger, facts));
  const bool would_be_enough = free.size() >= request.count;
  // Until a lease of its user ends, or the hours of the limit end, this ticket cannot start,
  // whatever else becomes free.
  const bool over = why_held_off(request, ledger, facts).has_value();
  if (!would_be_enough && !over && mine->expected_s && !request.adopts_running_process) {
    const std::vector<const Ticket*> guarding = guards_before(*mine, ledger, passed_over);
    if (guarding.empty()) return Blocked{std::move(verdicts)};
    return behind_one_of(*mine, rivals, guarding);
  }
  if (rivals.empty() && !is_enough) return Blocked{std::move(verdicts), would_be_enough || over};
  if (rivals.empty()) return Granted{choose(request, free, facts.snapshot)};
  const bool backfill = facts.policy.queue.backfill;
  if (backfill && over) return Blocked{std::move(verdicts), true};
  Behind waits = behind_one_of(*mine, rivals, guards_before(*mine, ledger, passed_over));
  if (!is_enough && !(would_be_enough && backfill)) return waits;
  if (const auto front = backfill ? those_in_front(ledger, *mine) : std::nullopt) {
    const Gap gap(*mine, *front, facts, passed_over, now);
    const auto left =
        std::ranges::count_if(free, [&](const Verdict& verdict) { return gap.is_open(verdict); });
    waits.front_suffices = std::cmp_less(left, request.count);
    waits.in_the_way = owners(gap, free);
    if (waits.front_suffices) return waits;
  }
  const Gap gap(*mine, ledger, facts, passed_over, now);
  if (backfill) waits.in_the_way = owners(gap, free);
  std::erase_if(free, [&](const Verdict& verdict) { return !gap.is_open(verdict); });
  if (free.size() < request.count) return waits;
  if (!is_enough) return Blocked{std::move(verdicts), true};
  return Granted{choose(request, free, facts.snapshot)};
}

}  // namespace berth
