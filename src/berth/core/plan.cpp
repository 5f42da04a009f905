#include "berth/core/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "berth/core/lineup.h"

namespace berth {
namespace {

/// What those before me are to have, and whose it is.
struct Kept {
  Hold hold;
  TicketId owner;
};

/// The verdicts that are free, on a candidate of mine.
std::vector<Verdict> free_for(const Ticket& mine, const std::vector<Verdict>& verdicts) {
  std::vector<Verdict> free;
  std::ranges::copy_if(verdicts, std::back_inserter(free), [&](const Verdict& verdict) {
    return verdict.free() && is_candidate(mine, verdict.uuid);
  });
  return free;
}

/// Looks for what is left beside those before a ticket.
class Gap {
 public:
  Gap(const Ticket& mine, const Ledger& ledger, const Facts& facts, const std::set<TicketId>& passed_over,
      Moment now)
      : mine_(mine), rules_(facts.policy.line), lineup_(lineup_of(ledger, facts, now, passed_over, mine.id)) {
    const Line& line = lineup_.line;
    const std::vector<Turn> turns =
        rules_.backfill ? schedule(line, rules_) : std::vector<Turn>(line.wishes.size(), WaitsBehind{});
    for (std::size_t at = 0; at < turns.size(); ++at) {
      for (const Hold& hold : holds_of(line, line.wishes[at], turns[at], rules_))
        kept_.push_back({hold, line.wishes[at].id});
    }
  }

  bool is_open(const Verdict& verdict) const {
    std::uint64_t left = verdict.free_bytes.value_or(0);
    for (const Kept* kept : in_the_way_of(verdict)) {
      if (kept->hold.whole || !mine_.shared || kept->hold.bytes > left) return false;
      left -= kept->hold.bytes;
    }
    return !mine_.shared || mine_.promise_bytes <= left;
  }

  /// Who has what stands in the way, each once.
  std::vector<TicketId> owners(const std::vector<Verdict>& free) const {
    std::set<TicketId> owners;
    for (const Verdict& verdict : free) {
      for (const Kept* kept : in_the_way_of(verdict)) owners.insert(kept->owner);
    }
    return {owners.begin(), owners.end()};
  }

 private:
  std::vector<const Kept*> in_the_way_of(const Verdict& verdict) const {
    const auto at = std::ranges::find(lineup_.uuids, verdict.uuid) - lineup_.uuids.begin();
    const Wish wish{.id = mine_.id, .length = mine_.time_s};
    const auto held = holds_of(lineup_.line, wish, StartsNow{{static_cast<std::size_t>(at)}}, rules_).front();
    std::vector<const Kept*> found;
    for (const Kept& kept : kept_) {
      if (meet(kept.hold, held)) found.push_back(&kept);
    }
    return found;
  }

  const Ticket& mine_;
  const LineRules& rules_;
  Lineup lineup_;
  std::vector<Kept> kept_;
};

bool guards(const Ticket& rival, const std::string& candidate) {
  return candidate == kEveryDevice
             ? std::ranges::find(rival.candidates, kEveryDevice) != rival.candidates.end()
             : is_candidate(rival, candidate);
}

Behind behind_one_of(const Ticket& mine, const std::vector<const Ticket*>& rivals) {
  const auto guards_all = [&](const Ticket* rival) {
    return std::ranges::all_of(mine.candidates, [&](const std::string& one) { return guards(*rival, one); });
  };
  const auto nearest_first = std::views::reverse(rivals);
  const auto found = std::ranges::find_if(nearest_first, guards_all);
  const Ticket& rival = found == nearest_first.end() ? *rivals.back() : **found;
  Behind waits{rival.id};
  std::ranges::copy_if(mine.candidates, std::back_inserter(waits.unguarded),
                       [&](const std::string& one) { return !guards(rival, one); });
  return waits;
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
                  const std::set<TicketId>& passed_over, Moment now) {
  const Ticket* mine = find_ticket(ledger, me);
  if (!mine || mine->phase != TicketPhase::waiting) {
    return fail(ErrorCode::failure, fmt::format("ticket {} does not wait", to_text(me)));
  }
  BERTH_LET(auto verdicts, judge(request, ledger, facts));
  const std::vector<const Ticket*> rivals = rivals_before(*mine, ledger, passed_over);
  std::vector<Verdict> open = free_for(*mine, verdicts);
  const bool is_enough = open.size() >= request.count;
  if (rivals.empty() && !is_enough) return Blocked{std::move(verdicts)};
  if (rivals.empty()) return Granted{choose(request, open, facts.snapshot)};
  Behind waits = behind_one_of(*mine, rivals);
  if (!is_enough) return waits;
  const Gap gap(*mine, ledger, facts, passed_over, now);
  if (facts.policy.line.backfill) waits.in_the_way = gap.owners(open);
  std::erase_if(open, [&](const Verdict& verdict) { return !gap.is_open(verdict); });
  if (open.size() >= request.count) return Granted{choose(request, open, facts.snapshot)};
  return waits;
}

}  // namespace berth
