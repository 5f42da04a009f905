#include "berth/queue/preemption.h"

#include <algorithm>

namespace berth {
namespace {

/// A lease that can be ended for somebody.
struct Yielder {
  TicketId id;
  std::int64_t since_s = 0;
  std::size_t devices = 0;
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
        yielders_.push_back({ticket.id, ticket.since_s, ticket.devices.size()});
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

  /// If a few large leases are enough instead of many small ones, these end; otherwise the
  /// youngest.
  std::vector<TicketId> fewest_for(std::size_t at) const {
    std::vector<TicketId> youngest = needed_for(at, yielders_);
    std::vector<Yielder> smallest_first = yielders_;
    std::ranges::stable_sort(smallest_first, {}, &Yielder::devices);
    std::vector<TicketId> largest = needed_for(at, smallest_first);
    return largest.size() < youngest.size() ? largest : youngest;
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
};

}  // namespace

std::vector<Preemption> preemptions(const Ledger& ledger, const Facts& facts, Moment now,
                                    const std::set<TicketId>& skipped) {
  HostQueue queue = host_queue_of(ledger, facts, now, skipped);
  return PreemptionPlanner(std::move(queue.state), facts.policy.queue, ledger).run();
}

}  // namespace berth
