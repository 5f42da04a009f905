#include "berth/core/lineup.h"

#include <algorithm>
#include <map>

#include "berth/core/device_memory.h"
#include "berth/core/turn_order.h"

namespace berth {
namespace {

// A lease has ended and its memory is not back: mostly a matter of a moment.
constexpr Moment kDraining = 10;
constexpr std::uint64_t kNanosecondsOfSecond = 1'000'000'000;

/// As they are for a request without conditions, wherever it is made.
std::vector<Verdict> plain_verdicts(const Ledger& ledger, const Facts& facts) {
  Facts of_anybody = facts;
  of_anybody.masks.clear();
  return judge_each({}, ledger, of_anybody).value_or(std::vector<Verdict>{});
}

// One that an older program has granted does not say when: it joined before.
Moment granted_at(const Ticket& lease) {
  return lease.granted_boot_s.value_or(static_cast<Moment>(lease.id.value / kNanosecondsOfSecond));
}

class Lining {
 public:
  /// `for_one_that_yields`: nobody ends for it.
  Lining(const Ledger& ledger, const Facts& facts, Moment now, bool for_one_that_yields)
      : ledger_(ledger), facts_(facts), for_one_that_yields_(for_one_that_yields) {
    lineup_.line.now = now;
    for (const Verdict& verdict : plain_verdicts(ledger, facts)) add(verdict);
  }

  void add(const Ticket& ticket, bool passed_over) {
    lineup_.line.wishes.push_back({.id = ticket.id,
                                   .uid = ticket.uid,
                                   .candidates = set_of(ticket.candidates),
                                   .count = ticket.count,
                                   .shared = ticket.shared,
                                   .bytes = ticket.promise_bytes,
                                   .length = said_length(ticket),
                                   .yields = ticket.yield_s.has_value(),
                                   .turn = ticket.turn,
                                   .passed_over = passed_over});
  }

  Lineup result() && { return std::move(lineup_); }

 private:
  void add(const Verdict& verdict) {
    const Device* device = find_device(facts_.snapshot, verdict.uuid);
    const std::size_t place = lineup_.uuids.size();
    lineup_.uuids.push_back(verdict.uuid);
    const std::vector<const Ticket*> leases = leases_holding(*device, ledger_);
    std::uint64_t room_bytes = verdict.free_bytes.value_or(0);
    for (const Ticket* lease : leases) {
      const bool whole = takes_whole(*lease, *device);
      hold({place, 0, end_of(*lease), whole, lease->promise_bytes, lease->id});
      room_bytes =
          whole ? lendable_memory(*device).value_or(0) : sum_of_bytes(room_bytes, lease->promise_bytes);
    }
    lineup_.line.room_bytes.push_back(room_bytes);
    if (!verdict.free() && leases.empty())
      hold({place, 0, verdict.failed == Clause::not_draining ? lineup_.line.now + kDraining : kNever});
  }

  Moment end_of(const Ticket& lease) const {
    const Moment now = lineup_.line.now;
    const Moment end = expected_end(granted_at(lease), lease.time_s, now, facts_.policy.line);
    const bool ends_when_asked = lease.yield_s && (lease.ending || !for_one_that_yields_);
    return ends_when_asked ? std::min(end, now + *lease.yield_s) : end;
  }

  void hold(const Hold& hold) { lineup_.line.holds.push_back(hold); }

  std::size_t set_of(const std::vector<std::string>& candidates) {
    const auto [known, is_new] = sets_.try_emplace(candidates, lineup_.line.sets.size());
    if (is_new) lineup_.line.sets.push_back(places_of(candidates));
    return known->second;
  }

  std::vector<std::size_t> places_of(const std::vector<std::string>& candidates) const {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < lineup_.uuids.size(); ++place) {
      const auto means = [&](const std::string& one) {
        return one == kEveryDevice || one == lineup_.uuids[place];
      };
      if (std::ranges::any_of(candidates, means)) places.push_back(place);
    }
    return places;
  }

  const Ledger& ledger_;
  const Facts& facts_;
  bool for_one_that_yields_;
  Lineup lineup_;
  std::map<std::vector<std::string>, std::size_t> sets_;
};

}  // namespace

Lineup lineup_of(const Ledger& ledger, const Facts& facts, Moment now, const std::set<TicketId>& passed_over,
                 const Ticket* before) {
  Lining lining(ledger, facts, now, before != nullptr && before->yield_s);
  for (const Ticket* ticket : in_line(ledger, passed_over, before)) {
    if (before != nullptr && ticket->id == before->id) break;
    lining.add(*ticket, ticket->held_back || passed_over.contains(ticket->id));
  }
  return std::move(lining).result();
}

std::optional<Moment> said_length(const Ticket& ticket) {
  if (!ticket.yield_s) return ticket.time_s;
  return std::min(*ticket.yield_s, ticket.time_s.value_or(*ticket.yield_s));
}

std::vector<TicketId> who_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                 std::set<TicketId> passed_over, TicketId me) {
  const Lineup lineup = lineup_of(ledger, facts, now, passed_over);
  const std::vector<Turn> turns = schedule(lineup.line, facts.policy.line);
  std::vector<TicketId> starting;
  for (std::size_t at = 0; at < turns.size(); ++at) {
    if (std::holds_alternative<StartsNow>(turns[at])) starting.push_back(lineup.line.wishes[at].id);
  }
  if (std::ranges::find(starting, me) == starting.end()) return starting;
  passed_over.insert(me);
  return who_starts(ledger, facts, now, std::move(passed_over), me);
}

std::map<TicketId, Moment> expected_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                           const std::set<TicketId>& passed_over) {
  std::map<TicketId, Moment> expected;
  if (count_waiting(ledger) == 0) return expected;
  Facts assuming_nothing = facts;
  assuming_nothing.policy.line.assumed_s = kNever;
  const Lineup lineup = lineup_of(ledger, assuming_nothing, now, passed_over);
  const auto starts = expected_starts(lineup.line, facts.policy.line);
  for (std::size_t at = 0; at < starts.size(); ++at) {
    if (starts[at]) expected.emplace(lineup.line.wishes[at].id, *starts[at]);
  }
  return expected;
}

bool is_any_unleased(const Ledger& ledger, const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.devices, [&](const Device& device) {
    return !is_split(device) && leases_holding(device, ledger).empty();
  });
}

}  // namespace berth
