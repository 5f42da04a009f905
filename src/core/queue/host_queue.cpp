#include "berth/queue/schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <ranges>

#include <fmt/format.h>

#include "berth/queue/acquisition.h"
#include "berth/queue/start_forecast.h"
#include "berth/verdict/verdict.h"

namespace berth {
namespace {

// A lease has ended and its memory is not back: mostly a matter of a moment.
constexpr Moment kDraining = 10 * kSecond;
// After SIGKILL a job ends, and its memory comes back.
constexpr Moment kAfterGrace = 30 * kSecond;

/// As they are for a request without conditions, wherever and by whomever it is made.
std::vector<Verdict> plain_verdicts(const Ledger& ledger, const Facts& facts) {
  Facts of_anybody = facts;
  of_anybody.masks.clear();
  of_anybody.passed_over.clear();
  return judge_each({}, ledger, of_anybody).value_or(std::vector<Verdict>{});
}

// The time that Berth needs to end a job whose time limit is over.
Moment to_end(const SitePolicy& policy) {
  return policy.time_grace_s * kSecond + kAfterGrace;
}

/// How the lengths of jobs are counted.
enum class Lengths {
  longest,  ///< until the last of them has surely ended: for what is promised
  said,     ///< until the time limit: for what people are told
};

class HostQueueBuilder {
 public:
  HostQueueBuilder(const Ledger& ledger, const Facts& facts, Moment now, Lengths lengths)
      : ledger_(ledger), facts_(facts), lengths_(lengths) {
    queue_.state.now = now;
    queue_.state.second = kSecond;
    for (const Verdict& verdict : plain_verdicts(ledger, facts)) add(verdict);
  }

  void add(const Ticket& ticket, bool skipped) {
    Wish& wish = queue_.state.wishes.emplace_back(wish_of(ticket, skipped));
    wish.candidates = set_of(ticket.candidates);
    wish.length = length_of(ticket);
  }

  HostQueue result() && { return std::move(queue_); }

 private:
  void add(const Verdict& verdict) {
    const Device* device = find_device(facts_.snapshot, verdict.uuid);
    const std::size_t index = queue_.uuids.size();
    queue_.uuids.push_back(verdict.uuid);
    const std::vector<const Ticket*> leases = leases_holding(*device, ledger_);
    std::uint64_t room_bytes = verdict.free_bytes.value_or(0);
    for (const Ticket* lease : leases) {
      const bool whole = takes_whole(*lease, *device);
      hold(of_lease(*lease, index, whole));
      room_bytes =
          whole ? lendable_memory(*device).value_or(0) : sum_of_bytes(room_bytes, lease->promise_bytes);
    }
    queue_.state.room_bytes.push_back(room_bytes);
    if (!verdict.free() && leases.empty()) hold(of_nobody(index, verdict));
  }

  Hold of_lease(const Ticket& lease, std::size_t index, bool whole) const {
    const Moment now = queue_.state.now;
    // Of a second alone, its end: the job may have as long as that.
    const Moment end = expected_end(granted_at(lease, kSecond - 1), length_of(lease), now,
                                    facts_.policy.queue, kSecond, likely_of(lease));
    Hold hold{index, 0, end, whole, lease.promise_bytes, lease.id};
    if (!lease.yield_s) return hold;
    hold.leaves = lease.ending ? Leaves::anyhow : Leaves::when_asked;
    hold.left_by = now + *lease.yield_s * kSecond;
    return hold;
  }

  Hold of_nobody(std::size_t index, const Verdict& verdict) const {
    Hold hold{index, 0};
    if (verdict.failed != Clause::not_draining) return hold;
    hold.until = queue_.state.now + kDraining;
    hold.leaves = Leaves::anyhow;
    return hold;
  }

  std::optional<Moment> length_of(const Ticket& ticket) const {
    const auto longest = longest_stay(ticket, facts_.policy);
    if (!longest || lengths_ == Lengths::longest) return longest;
    return *longest - to_end(facts_.policy);
  }

  // People are told what time limits alone say.
  std::optional<Moment> likely_of(const Ticket& ticket) const {
    return lengths_ == Lengths::longest ? wish_of(ticket, false).likely : std::nullopt;
  }

  void hold(const Hold& hold) { queue_.state.holds.push_back(hold); }

  std::size_t set_of(const std::vector<std::string>& candidates) {
    const auto [known, is_new] = sets_.try_emplace(candidates, queue_.state.sets.size());
    if (is_new) queue_.state.sets.push_back(indices_of(candidates));
    return known->second;
  }

  std::vector<std::size_t> indices_of(const std::vector<std::string>& candidates) const {
    std::vector<std::size_t> indices;
    for (std::size_t index = 0; index < queue_.uuids.size(); ++index) {
      const auto means = [&](const std::string& one) {
        return one == kEveryDevice || one == queue_.uuids[index];
      };
      if (std::ranges::any_of(candidates, means)) indices.push_back(index);
    }
    return indices;
  }

  const Ledger& ledger_;
  const Facts& facts_;
  Lengths lengths_;
  HostQueue queue_;
  std::map<std::vector<std::string>, std::size_t> sets_;
};

HostQueue make_host_queue(const Ledger& ledger, const Facts& facts, Moment now,
                          const std::set<TicketId>& skipped, const Ticket* before, Lengths lengths) {
  HostQueueBuilder builder(ledger, facts, now, lengths);
  for (const Ticket* ticket : waiting_in_order(ledger, skipped, now, before)) {
    if (before != nullptr && ticket->id == before->id) break;
    builder.add(*ticket, ticket->held_back || skipped.contains(ticket->id));
  }
  return std::move(builder).result();
}

struct Starts {
  HostQueue queue;
  std::vector<std::optional<ExpectedStart>> starts;
};

Starts by_limits(const Ledger& ledger, const Facts& facts, Moment now, const std::set<TicketId>& skipped) {
  Facts assuming_nothing = facts;
  assuming_nothing.policy.queue.assumed_s = kNever;
  HostQueue queue = make_host_queue(ledger, assuming_nothing, now, skipped, nullptr, Lengths::said);
  auto starts = expected_starts(queue.state, facts.policy.queue);
  return {std::move(queue), std::move(starts)};
}

bool goes_by_run_times(const Ledger& ledger) {
  return std::ranges::any_of(ledger.tickets, [](const Ticket& ticket) {
    return ticket.phase == TicketPhase::waiting && ticket.expected_s;
  });
}

Starts foretold(const Ledger& ledger, const Facts& facts, Moment now, const std::set<TicketId>& skipped) {
  HostQueue queue = make_host_queue(ledger, facts, now, skipped, nullptr, Lengths::said);
  std::vector<Tenure> tenures;
  for (const Ticket& lease : ledger.tickets) {
    if (lease.phase != TicketPhase::granted) continue;
    const Wish wish = wish_of(lease, false);
    tenures.push_back({.id = lease.id,
                       .uid = lease.uid,
                       .since = granted_at(lease, kSecond - 1),
                       .length = lease.time_s.transform([](auto seconds) { return seconds * kSecond; }),
                       .likely = wish.likely,
                       .expected = wish.expected,
                       .yields = wish.yields});
  }
  auto starts = foretold_starts(queue.state, tenures, gpus_by_user(ledger), facts.policy.queue);
  return {std::move(queue), std::move(starts)};
}

}  // namespace

HostQueue host_queue_of(const Ledger& ledger, const Facts& facts, Moment now,
                        const std::set<TicketId>& skipped, const Ticket* before) {
  return make_host_queue(ledger, facts, now, skipped, before, Lengths::longest);
}

std::optional<Moment> longest_stay(const Ticket& ticket, const SitePolicy& policy) {
  if (!ticket.time_s) return std::nullopt;
  return *ticket.time_s * kSecond + to_end(policy);
}

std::vector<TicketId> who_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                 std::set<TicketId> skipped, TicketId me) {
  const HostQueue queue = host_queue_of(ledger, facts, now, skipped);
  const std::vector<Assignment> assignments = schedule(queue.state, facts.policy.queue);
  std::vector<TicketId> starting;
  for (std::size_t at = 0; at < assignments.size(); ++at) {
    if (std::holds_alternative<StartsNow>(assignments[at])) starting.push_back(queue.state.wishes[at].id);
  }
  if (std::ranges::find(starting, me) == starting.end()) return starting;
  skipped.insert(me);
  return who_starts(ledger, facts, now, std::move(skipped), me);
}

std::map<TicketId, ForeseenStart> expected_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                                  const std::set<TicketId>& skipped) {
  std::map<TicketId, ForeseenStart> expected;
  if (count_waiting(ledger) == 0) return expected;
  const auto [queue, starts] = goes_by_run_times(ledger) ? foretold(ledger, facts, now, skipped)
                                                         : by_limits(ledger, facts, now, skipped);
  for (std::size_t at = 0; at < starts.size(); ++at) {
    if (!starts[at]) continue;
    ForeseenStart& start = expected[queue.state.wishes[at].id];
    start.boot_s = starts[at]->from / kSecond;
    for (const std::size_t device : starts[at]->devices) start.uuids.push_back(queue.uuids[device]);
  }
  return expected;
}

bool is_any_unleased(const Ledger& ledger, const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.devices, [&](const Device& device) {
    return !is_split(device) && leases_holding(device, ledger).empty();
  });
}

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
  for (const KeptHold* kept : in_the_way_of(verdict)) {
    if (kept->hold.whole || !mine_.shared || kept->hold.bytes > left) return false;
    left -= kept->hold.bytes;
  }
  return !mine_.shared || mine_.promise_bytes <= left;
}

std::vector<TicketId> Gap::owners(const Verdict& verdict) const {
  std::set<TicketId> owners;
  for (const KeptHold* kept : in_the_way_of(verdict)) owners.insert(kept->owner);
  return {owners.begin(), owners.end()};
}

std::vector<const Gap::KeptHold*> Gap::in_the_way_of(const Verdict& verdict) const {
  const auto at = std::ranges::find(queue_.uuids, verdict.uuid) - queue_.uuids.begin();
  Wish wish = wish_of(mine_, false);
  wish.length = longest_stay(mine_, policy_);
  const auto held =
      holds_of(queue_.state, wish, StartsNow{{static_cast<std::size_t>(at)}}, policy_.queue).front();
  std::vector<const KeptHold*> found;
  for (const KeptHold& kept : kept_) {
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
    verdict.reason = fmt::format(
        "kept for {}, {}{}", names_of(owners),
        newcomer.number || newcomer.expected_s ? "whose turn is before yours" : "who asked earlier",
        owners.size() == 1 ? silence : "");
  }
  return verdicts;
}

}  // namespace berth
