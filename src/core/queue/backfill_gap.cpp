#include "berth/queue/backfill_gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>

#include "berth/queue/expected_run_time.h"
#include "berth/queue/queue_order.h"
#include "berth/queue/untaken.h"
#include "berth/verdict/device_clauses.h"

namespace berth {

namespace {

/// Of the first that leaves its turn, to be added to a reason.
std::string silence_before(Ticket mine, const Ledger& ledger, const Facts& facts,
                           const std::set<TicketId>& skipped, Moment now) {
  if (facts.leases_unchanged_s < kAnswersWithinS) return "";
  // The verdicts of a newcomer say already which devices it could be given.
  if (mine.candidates.empty()) {
    for (const Device& device : facts.snapshot.devices) mine.candidates.push_back(device.uuid);
  }
  Ledger with_mine = ledger;
  if (find_ticket(ledger, mine.id, TicketPhase::waiting) == nullptr) with_mine.tickets.push_back(mine);
  const auto turns = able_before(mine.id, with_mine, facts, now, skipped, FreeBy::driver);
  if (!turns || turns->empty()) return "";
  const std::string words =
      silence_in_words(*find_ticket(ledger, turns->front().id, TicketPhase::waiting), facts, now);
  return words.empty() ? "" : ": " + words;
}

}  // namespace

Gap::Gap(const Ticket& mine, const Ledger& ledger, const Facts& facts, const std::set<TicketId>& skipped,
         Moment now)
    : mine_(mine), policy_(facts.policy), queue_(host_queue_of(ledger, facts, now, skipped, &mine)) {
  const QueueState& queue = queue_.state;
  const std::vector<Assignment> assignments =
      policy_.queue.backfill ? schedule(queue, policy_.queue)
                             : std::vector<Assignment>(queue.wishes.size(), WaitsBehind{});
  for (std::size_t at = 0; at < assignments.size(); ++at) {
    for (const Hold& hold : holds_of(queue, queue.wishes[at], assignments[at], policy_.queue))
      kept_.push_back({hold, queue.wishes[at].id});
  }
}

bool Gap::is_open(const Verdict& verdict) const {
  std::uint64_t left = verdict.free_bytes.value_or(0);
  for (const Kept* kept : in_the_way_of(verdict)) {
    if (kept->hold.whole || !mine_.shared || kept->hold.bytes > left) return false;
    left -= kept->hold.bytes;
  }
  return !mine_.shared || mine_.promise_bytes <= left;
}

std::vector<TicketId> Gap::owners(const Verdict& verdict) const {
  std::set<TicketId> owners;
  for (const Kept* kept : in_the_way_of(verdict)) owners.insert(kept->owner);
  return {owners.begin(), owners.end()};
}

std::vector<const Gap::Kept*> Gap::in_the_way_of(const Verdict& verdict) const {
  const auto at = std::ranges::find(queue_.uuids, verdict.uuid) - queue_.uuids.begin();
  Wish wish = wish_of(mine_, false);
  wish.length = longest_stay(mine_, policy_);
  const auto held =
      holds_of(queue_.state, wish, StartsNow{{static_cast<std::size_t>(at)}}, policy_.queue).front();
  std::vector<const Kept*> found;
  for (const Kept& kept : kept_) {
    if (meet(kept.hold, held)) found.push_back(&kept);
  }
  return found;
}

Ticket newcomer(const Request& request, std::vector<std::string> candidates, const Ledger& ledger,
                const Facts& facts) {
  Ticket ticket = ticket_for(request);
  ticket.id = TicketId{std::numeric_limits<std::uint64_t>::max()};
  ticket.uid = facts.asker_uid;
  ticket.number = next_number(facts.policy.queue.order, ticket.uid, ledger);
  // The command is not known, and it has not waited. So it comes behind all requests that go by
  // their run times.
  note_expectation(ticket, {}, facts.policy.queue);
  ticket.candidates = std::move(candidates);
  return ticket;
}

std::vector<Verdict> behind_the_queue(std::vector<Verdict> verdicts, const Ticket& newcomer,
                                      const Ledger& ledger, const Facts& facts,
                                      const std::set<TicketId>& skipped, Moment now) {
  if (count_waiting(ledger) == 0) return verdicts;
  const Gap gap(newcomer, ledger, facts, skipped, now);
  const std::string silence = silence_before(newcomer, ledger, facts, skipped, now);
  for (Verdict& verdict : verdicts) {
    if (!verdict.free() || gap.is_open(verdict)) continue;
    std::vector<const Ticket*> owners;
    for (const TicketId id : gap.owners(verdict)) {
      if (const Ticket* ticket = find_ticket(ledger, id, TicketPhase::waiting)) owners.push_back(ticket);
    }
    for (const Ticket* owner : owners | std::views::take(kMostCulprits))
      verdict.culprits.push_back(culprit_of(*owner));
    verdict.more_culprits = owners.size() - verdict.culprits.size();
    verdict.failed = Clause::not_awaited;
    verdict.reason = fmt::format("kept for {}, {}{}", names_of(owners),
                                 newcomer.number ? "whose turn is before yours" : "who asked earlier",
                                 owners.size() == 1 ? silence : "");
  }
  return verdicts;
}

}  // namespace berth
