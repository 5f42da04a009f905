#include "berth/queue/extension.h"

#include <algorithm>

namespace berth {
namespace {

// The moment at which the turn comes, which no later request delays. nullopt: no moment is kept for
// the ticket.
std::optional<Moment> start_of(const Assignment& assignment, Moment now) {
  if (std::holds_alternative<StartsNow>(assignment)) return now;
  const auto* reserved = std::get_if<ReservedFrom>(&assignment);
  return reserved == nullptr ? std::nullopt : std::optional(reserved->from);
}

}  // namespace

std::optional<Delayed> delayed_by_extension(const Ledger& ledger, const Facts& facts, Moment now,
                                            const std::set<TicketId>& skipped, TicketId lease,
                                            std::int64_t time_s) {
  Ledger longer = ledger;
  const auto extended = std::ranges::find_if(longer.tickets, [lease](const Ticket& ticket) {
    return ticket.id == lease && ticket.phase == TicketPhase::granted;
  });
  if (extended == longer.tickets.end()) return std::nullopt;
  extended->time_s = time_s;
  const QueueState queue = host_queue_of(ledger, facts, now, skipped).state;
  const auto before = schedule(queue, facts.policy.queue);
  const auto after = schedule(host_queue_of(longer, facts, now, skipped).state, facts.policy.queue);
  for (std::size_t at = 0; at < before.size(); ++at) {
    const auto start = start_of(before[at], now);
    const auto later = start_of(after[at], now);
    // A request that yields has no reservation on which it could count.
    if (!start || queue.wishes[at].yields || (later && *later <= *start)) continue;
    // As the queue tells it. Not known where somebody before it has no time limit.
    const auto told = expected_starts(ledger, facts, now, skipped);
    const auto mine = told.find(queue.wishes[at].id);
    return Delayed{queue.wishes[at].id, mine == told.end() ? *start / kSecond : mine->second.boot_s};
  }
  return std::nullopt;
}

std::optional<TicketId> passed_by_its_limit(const Ledger& ledger, const std::set<TicketId>& skipped,
                                            TicketId lease) {
  const Ticket* held = find_ticket(ledger, lease, TicketPhase::granted);
  if (held == nullptr || !held->time_s || !held->expected_s) return std::nullopt;
  const auto was_passed = [&](const Ticket& other) {
    const auto could_use = [&](const std::string& uuid) { return is_candidate(other, uuid); };
    return other.phase == TicketPhase::waiting && other.expected_s && !other.yield_s && !other.held_back &&
           !skipped.contains(other.id) && other.id < lease && std::ranges::any_of(held->devices, could_use);
  };
  const auto found = std::ranges::find_if(ledger.tickets, was_passed);
  return found == ledger.tickets.end() ? std::nullopt : std::optional(found->id);
}

}  // namespace berth
