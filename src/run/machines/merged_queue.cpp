#include "berth/machines/merged_queue.h"

#include <algorithm>
#include <map>

namespace berth {
namespace {

class QueueMerger {
 public:
  explicit QueueMerger(const LabOrder& order) {
    for (const LabStanding& each : order.standing)
      spots_.try_emplace(each.origin, Spot{spots_.size() + 1, each.position});
  }

  void add(const Host& host) {
    std::size_t rank = 0;  // of the last one so far in the lab queue
    for (const Standing& waiter : host.report->waiters) {
      const auto spot = spots_.find(waiter.ticket.origin);
      const bool is_in_order = spot != spots_.end();
      if (is_in_order) rank = spot->second.rank;
      Found found{{&host, &waiter, {&host}}, rank};
      if (is_in_order) found.waiter.position = spot->second.position;
      put(std::move(found));
    }
  }

  std::vector<LabWaiter> in_order() && {
    std::ranges::stable_sort(found_, {}, [](const Found& each) {
      return std::pair(each.rank, !each.waiter.position.has_value());
    });
    std::vector<LabWaiter> waiters;
    for (Found& each : found_) waiters.push_back(std::move(each.waiter));
    return waiters;
  }

 private:
  struct Spot {
    std::size_t rank, position;
  };
  struct Found {
    LabWaiter waiter;
    std::size_t rank;
  };

  void put(Found found) {
    if (const auto from = origin_and_user(found.waiter.nearest->ticket)) {
      const auto [seen, is_new] = seen_.try_emplace(*from, found_.size());
      if (!is_new) return stand_there_too(found_[seen->second], found);
    }
    found_.push_back(std::move(found));
  }

  static void stand_there_too(Found& known, const Found& there) {
    known.waiter.hosts.push_back(there.waiter.at);
    const auto key = [](const Found& each) {
      return std::pair(each.waiter.nearest->starts_at_s.value_or(kNever), each.waiter.nearest->position);
    };
    if (key(there) >= key(known)) return;
    known.waiter.at = there.waiter.at;
    known.waiter.nearest = there.waiter.nearest;
    known.rank = there.rank;
  }

  std::map<std::string, Spot, std::less<>> spots_;
  std::map<std::pair<std::string, std::string>, std::size_t> seen_;
  std::vector<Found> found_;
};

}  // namespace

std::optional<std::pair<std::string, std::string>> origin_and_user(const Ticket& ticket) {
  if (ticket.origin.empty()) return std::nullopt;
  return std::pair(ticket.origin, ticket.user);
}

std::vector<LabWaiter> merged_queue(const Hosts& hosts, const LabOrder& order) {
  QueueMerger merger(order);
  for (const auto& host : hosts)
    if (host->report) merger.add(*host);
  return std::move(merger).in_order();
}

}  // namespace berth
