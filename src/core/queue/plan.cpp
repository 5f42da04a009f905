#include "berth/queue/schedule.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "berth/queue/gate_decision.h"

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

bool counts_as_waiting(const Ticket& ticket, const std::set<TicketId>& skipped) {
  return ticket.phase == TicketPhase::waiting && !ticket.held_back && !skipped.contains(ticket.id);
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
                                         const std::set<TicketId>& skipped) {
  std::vector<const Ticket*> rivals;
  for (const Ticket* other : waiting_in_order(ledger, skipped, now, &mine)) {
    if (other->id == mine.id) break;
    if (counts_as_waiting(*other, skipped) && are_rivals(mine, *other)) rivals.push_back(other);
  }
  return rivals;
}

std::vector<const Ticket*> guards_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& skipped) {
  std::vector<const Ticket*> guarding;
  for (const Ticket& other : ledger.tickets) {
    if (counts_as_waiting(other, skipped) && comes_before(other, mine) && are_rivals(mine, other))
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

namespace {

/// All that a ticket plans with.
struct PlanFacts {
  const Ledger& ledger;
  const Facts& facts;
  const Request& request;
  const std::set<TicketId>& skipped;
  Moment now;
};

/// The plan of one ticket that waits.
class PlanOfTicket {
 public:
  PlanOfTicket(const Ticket& mine, const PlanFacts& known, std::vector<Verdict> verdicts)
      : mine_(mine),
        known_(known),
        verdicts_(std::move(verdicts)),
        rivals_(known.request.adopts_running_process
                    ? std::vector<const Ticket*>{}
                    : rivals_before(mine, known.ledger, known.now, known.skipped)),
        free_(free_for(mine, verdicts_)),
        is_enough_(is_enough(free_)) {
    if (!is_enough_) free_ = free_for(mine, as_others_see(known.request, known.ledger, known.facts));
    would_be_enough_ = is_enough(free_);
    is_held_off_ = why_held_off(known.request, known.ledger, known.facts).has_value();
  }

  Plan plan() && {
    if (waits_for_devices()) return sleeps_as_it_came();
    if (rivals_.empty()) return is_enough_ ? granted() : blocked(would_be_enough_ || is_held_off_);
    if (backfills() && is_held_off_) return blocked(true);
    Behind behind = behind_one_of(mine_, rivals_, guards());
    if (!is_enough_ && !(would_be_enough_ && backfills())) return behind;
    look_at_first(behind);
    if (behind.front_suffices) return behind;
    keep_what_rivals_leave(behind);
    if (!is_enough(free_)) return behind;
    return is_enough_ ? granted() : blocked(true);
  }

 private:
  bool is_enough(const std::vector<Verdict>& free) const { return free.size() >= known_.request.count; }
  bool backfills() const { return known_.facts.policy.queue.backfill; }

  std::vector<const Ticket*> guards() const { return guards_before(mine_, known_.ledger, known_.skipped); }

  /// Nothing but the devices keeps it waiting, and it waits for them in the order of coming.
  bool waits_for_devices() const {
    return !would_be_enough_ && !is_held_off_ && mine_.expected_s && !known_.request.adopts_running_process;
  }

  Plan sleeps_as_it_came() {
    const std::vector<const Ticket*> guarding = guards();
    if (guarding.empty()) return blocked(false);
    return behind_one_of(mine_, rivals_, guarding);
  }

  /// If the tickets that came before all unread ones leave too little, the rest of the queue need
  /// not be read.
  void look_at_first(Behind& behind) const {
    const auto front = backfills() ? those_in_front(known_.ledger, mine_) : std::nullopt;
    if (!front) return;
    const Gap gap = gap_behind(*front);
    const auto left =
        std::ranges::count_if(free_, [&](const Verdict& verdict) { return gap.is_open(verdict); });
    behind.front_suffices = std::cmp_less(left, known_.request.count);
    behind.in_the_way = owners(gap, free_);
  }

  void keep_what_rivals_leave(Behind& behind) {
    const Gap gap = gap_behind(known_.ledger);
    if (backfills()) behind.in_the_way = owners(gap, free_);
    std::erase_if(free_, [&](const Verdict& verdict) { return !gap.is_open(verdict); });
  }

  Gap gap_behind(const Ledger& others) const {
    return {mine_, others, known_.facts, known_.skipped, known_.now};
  }

  Plan granted() const { return Granted{choose(known_.request, free_, known_.facts.snapshot)}; }
  Plan blocked(bool held_back) { return Blocked{std::move(verdicts_), held_back}; }

  const Ticket& mine_;
  const PlanFacts known_;
  std::vector<Verdict> verdicts_;
  std::vector<const Ticket*> rivals_;
  /// The devices that are free for it. If they are too few: as others see it, who know nothing of
  /// its conditions.
  std::vector<Verdict> free_;
  bool is_enough_;                ///< by its own conditions
  bool would_be_enough_ = false;  ///< as others see it
  /// Until a lease of its user ends, or the hours of a limit end, it cannot start, whatever else
  /// becomes free.
  bool is_held_off_ = false;
};

}  // namespace

Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& skipped, Moment now) {
  const Ticket* mine = find_ticket(ledger, me, TicketPhase::waiting);
  if (!mine) {
    return fail(ErrorCode::failure, fmt::format("ticket {} does not wait", to_text(me)));
  }
  BERTH_LET(auto verdicts, judge(request, ledger, facts));
  return PlanOfTicket(*mine, {ledger, facts, request, skipped, now}, std::move(verdicts)).plan();
}

}  // namespace berth
