#include "berth/queue/standing.h"

#include <algorithm>
#include <numeric>

namespace berth {
namespace {

/// A lease that can be ended for somebody.
struct Yielder {
  TicketId id;
  std::int64_t since_s = 0;
};

/// The devices that a wish lacks, and the most that it can get by the ends of leases.
struct Gain {
  std::size_t missing = 0;           ///< devices
  std::vector<std::size_t> devices;  ///< of each lease, in the order of the leases

  bool may_be_enough(const std::vector<char>& ends) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) sum += ends[i] != 0 ? devices[i] : 0;
    return sum >= missing;
  }

  std::size_t least_leases() const {
    std::vector<std::size_t> most_first = devices;
    std::ranges::sort(most_first, std::ranges::greater{});
    std::size_t leases = 0;
    for (std::size_t sum = 0; leases < most_first.size() && sum < missing; ++leases)
      sum += most_first[leases];
    return leases;
  }
};

class PreemptionPlanner {
 public:
  PreemptionPlanner(QueueState queue, const QueueRules& rules, const Ledger& ledger)
      : queue_(std::move(queue)), rules_(rules) {
    std::erase_if(queue_.wishes, [](const Wish& wish) { return wish.yields; });
    // A device whose lease is ending already is free in a moment. So no other lease need end for
    // it.
    std::erase_if(queue_.holds,
                  [](const Hold& hold) { return hold.owner == TicketId{} && hold.until != kNever; });
    queue_.wishes.resize(std::min(queue_.wishes.size(), kMostPreempting));
    for (const Ticket& ticket : ledger.tickets) {
      if (ticket.phase != TicketPhase::granted || !ticket.yield_s) continue;
      if (ticket.ending) {
        without({ticket.id}, queue_);
      } else {
        yielders_.push_back({ticket.id, ticket.since_s});
      }
    }
    std::ranges::stable_sort(yielders_, {}, &Yielder::since_s);
  }

  std::vector<Preemption> run() {
    const QueueState before = queue_;
    std::vector<Preemption> chosen;
    for (std::size_t at = 0; at < queue_.wishes.size() && !yielders_.empty(); ++at) {
      if (queue_.wishes[at].skipped || starts(at, {})) continue;
      const std::vector<TicketId> ended = fewest_for(at);
      without(ended, queue_);
      std::erase_if(yielders_, [&](const Yielder& one) { return contains(ended, one.id); });
      for (const TicketId lease : ended) chosen.push_back({lease, queue_.wishes[at].id});
    }
    while (spare_one(before, chosen)) {
    }
    return chosen;
  }

 private:
  static bool contains(const std::vector<TicketId>& ids, TicketId id) {
    return std::ranges::find(ids, id) != ids.end();
  }

  static void without(const std::vector<TicketId>& ended, QueueState& queue) {
    std::erase_if(queue.holds, [&](const Hold& hold) { return contains(ended, hold.owner); });
  }

  /// Drops a preemption that another chosen preemption has made unnecessary.
  bool spare_one(const QueueState& before, std::vector<Preemption>& chosen) const {
    for (std::size_t at = 0; at < chosen.size(); ++at) {
      std::vector<Preemption> fewer = chosen;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
      if (who_starts_without(fewer, before) < who_starts_without(chosen, before)) continue;
      chosen = std::move(fewer);
      return true;
    }
    return false;
  }

  /// Of each wish, in the order of the queue, whether it starts.
  std::vector<bool> who_starts_without(const std::vector<Preemption>& ended, QueueState queue) const {
    std::vector<TicketId> leases;
    for (const Preemption& one : ended) leases.push_back(one.lease);
    without(leases, queue);
    std::vector<bool> starts;
    for (const Assignment& assignment : schedule(queue, rules_))
      starts.push_back(std::holds_alternative<StartsNow>(assignment));
    return starts;
  }

  bool starts(std::size_t at, const std::vector<TicketId>& ended) const {
    QueueState front = queue_;
    front.wishes.resize(at + 1);
    without(ended, front);
    return std::holds_alternative<StartsNow>(schedule(front, rules_).back());
  }

  /// Of the sets of leases that are enough, the smallest; of equally small ones, the one whose
  /// oldest lease is the youngest.
  std::vector<TicketId> fewest_for(std::size_t at) {
    std::vector<TicketId> fewest = needed_for(at, yielders_);
    const Gain gain = gain_of(queue_.wishes[at]);
    for (std::size_t size = gain.least_leases(); size < fewest.size(); ++size) {
      std::vector<char> ends(yielders_.size(), 0);
      std::fill_n(ends.rbegin(), size, 1);
      do {
        if (sets_left_ == 0) {
          std::vector<TicketId> by_devices = needed_for(at, by_gain(gain));
          return by_devices.size() < fewest.size() ? by_devices : fewest;
        }
        --sets_left_;
        if (!gain.may_be_enough(ends)) continue;
        if (std::vector<TicketId> ended = those_that(ends); starts(at, ended)) return ended;
      } while (std::ranges::next_permutation(ends).found);
    }
    return fewest;
  }

  /// The leases that yield give a wish no more than this. It may be less: a device can have several
  /// leases, and an earlier wish can take what ends.
  Gain gain_of(const Wish& wish) const {
    const std::vector<std::size_t>& candidates = queue_.sets[wish.candidates];
    std::vector<std::size_t> taken;
    Gain gain{wish.count, std::vector<std::size_t>(yielders_.size(), 0)};
    for (const Hold& hold : queue_.holds) {
      if (!std::ranges::binary_search(candidates, hold.device)) continue;
      if (hold.whole || !wish.shared) taken.push_back(hold.device);
      const auto owner = std::ranges::find(yielders_, hold.owner, &Yielder::id);
      if (owner != yielders_.end()) ++gain.devices[static_cast<std::size_t>(owner - yielders_.begin())];
    }
    std::ranges::sort(taken);
    taken.erase(std::ranges::unique(taken).begin(), taken.end());
    gain.missing -= std::min(gain.missing, candidates.size() - taken.size());
    return gain;
  }

  std::vector<Yielder> by_gain(const Gain& gain) const {
    std::vector<std::size_t> order(yielders_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::size_t at) { return gain.devices[at]; });
    std::vector<Yielder> sorted;
    for (const std::size_t at : order) sorted.push_back(yielders_[at]);
    return sorted;
  }

  std::vector<TicketId> those_that(const std::vector<char>& end) const {
    std::vector<TicketId> ids;
    for (std::size_t i = 0; i < end.size(); ++i) {
      if (end[i] != 0) ids.push_back(yielders_[i].id);
    }
    return ids;
  }

  /// The leases that have to end, if in this order each lease stays that can stay.
  std::vector<TicketId> needed_for(std::size_t at, const std::vector<Yielder>& order) const {
    std::vector<TicketId> ended;
    for (const Yielder& one : order) ended.push_back(one.id);
    if (!starts(at, ended)) return {};
    for (const Yielder& one : order) {
      std::vector<TicketId> fewer = ended;
      std::erase(fewer, one.id);
      if (starts(at, fewer)) ended = std::move(fewer);
    }
    return ended;
  }

  QueueState queue_;
  const QueueRules& rules_;
  std::vector<Yielder> yielders_;  ///< the oldest first
  std::size_t sets_left_ = kMostSetsTried;
};

}  // namespace

std::vector<Preemption> preemptions(const Ledger& ledger, const Facts& facts, Moment now,
                                    const std::set<TicketId>& skipped) {
  HostQueue queue = host_queue_of(ledger, facts, now, skipped);
  return PreemptionPlanner(std::move(queue.state), facts.policy.queue, ledger).run();
}

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
