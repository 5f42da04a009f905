#include "berth/queue/untaken.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "berth/base/units.h"
#include "berth/queue/host_queue.h"

namespace berth {

std::optional<std::vector<TicketId>> able_before(TicketId me, const Ledger& ledger, const Facts& facts,
                                                 Moment now, const std::set<TicketId>& skipped,
                                                 FreeBy free_by) {
  QueueState queue = host_queue_of(ledger, facts, now, skipped).state;
  if (free_by == FreeBy::leases)
    std::erase_if(queue.holds, [](const Hold& hold) { return hold.owner == TicketId{}; });
  std::vector<TicketId> turns;
  for (const std::size_t at : able_to_start(queue, facts.policy.queue)) {
    if (queue.wishes[at].id == me) return turns;
    turns.push_back(queue.wishes[at].id);
  }
  return std::nullopt;
}

std::vector<PassedUpStart> seen_again(const std::vector<PassedUpStart>& before,
                                      const std::vector<TicketId>& turns, std::chrono::milliseconds now) {
  const auto [still, kept] = std::ranges::mismatch(before, turns, {}, &PassedUpStart::id);
  std::vector<PassedUpStart> seen(before.begin(), still);
  std::ranges::transform(kept, turns.end(), std::back_inserter(seen),
                         [now](TicketId id) { return PassedUpStart{id, now}; });
  return seen;
}

std::set<TicketId> that_do_not_answer(const std::vector<PassedUpStart>& turns, std::chrono::milliseconds now,
                                      std::chrono::milliseconds patience) {
  std::set<TicketId> silent;
  for (const PassedUpStart& turn : turns) {
    if (now - turn.since < (static_cast<int>(silent.size()) + 1) * patience) break;
    silent.insert(turn.id);
  }
  return silent;
}

std::string silence_in_words(const Ticket& ticket, const Facts& facts, Moment now) {
  const std::int64_t seconds = std::min(facts.leases_unchanged_s, (now - joined_at(ticket)) / kSecond);
  if (seconds < kAnswersWithinS) return "";
  const auto frozen = facts.frozen.find(ticket.id);
  return fmt::format("free for it since {}, does not answer{}", duration_for_people(seconds),
                     frozen == facts.frozen.end() ? "" : fmt::format(" ({})", frozen->second));
}

}  // namespace berth
