#include "berth/queue/queue_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>

#include "berth/queue/host_queue.h"

namespace berth {
namespace {

using Indices = std::vector<std::size_t>;

constexpr Moment kLongestAge = 10LL * 365 * 86'400 * kSecond;
// The product of an age and a run time needs more than 64 bits.
__extension__ using Wide = unsigned __int128;

/// The order of wishes of one kind: all of them yield, or none does.
class FairOrder {
 public:
  FairOrder(std::span<const Wish> wishes, std::map<std::uint32_t, std::uint64_t> has, Moment now)
      : wishes_(wishes), has_(std::move(has)), now_(now) {}

  void sort(std::span<std::size_t> indices) {
    const auto oldest =
        std::ranges::find_if(indices, [&](std::size_t at) { return !wishes_[at].passed_over; });
    if (oldest != indices.end() && wishes_[*oldest].expected &&
        waited(*oldest) >= wishes_[*oldest].longest_wait)
      first_ = *oldest;
    while (!indices.empty()) {
      const auto run = indices.first(length_of_run(indices));
      sort_run(run);
      indices = indices.subspan(run.size());
    }
  }

 private:
  /// How many of the first wishes may go past each other.
  std::size_t length_of_run(std::span<const std::size_t> indices) const {
    const Wish& first = wishes_[indices.front()];
    if (!first.fair_number && !first.expected) return 1;
    const auto is_other = [&](std::size_t at) {
      return wishes_[at].fair_number.has_value() != first.fair_number.has_value() ||
             wishes_[at].expected.has_value() != first.expected.has_value();
    };
    return static_cast<std::size_t>(std::ranges::find_if(indices, is_other) - indices.begin());
  }

  void sort_run(std::span<std::size_t> run) {
    const bool by_user = wishes_[run.front()].fair_number.has_value();
    if (wishes_[run.front()].expected) std::ranges::sort(run, std::bind_front(&FairOrder::is_before, this));
    if (by_user) sort_by_user(run);
    const auto first = std::ranges::find(run, first_);
    if (first != run.end()) std::rotate(run.begin(), first, std::next(first));
  }

  Moment waited(std::size_t at) const { return std::clamp<Moment>(now_ - wishes_[at].since, 0, kLongestAge); }

  /// By their response ratios; REQUIRES: both have a time.
  bool is_before(std::size_t a, std::size_t b) const {
    const Wide left = static_cast<Wide>(waited(a)) * static_cast<Wide>(*wishes_[b].expected);
    const Wide right = static_cast<Wide>(waited(b)) * static_cast<Wide>(*wishes_[a].expected);
    return left != right ? left > right : a < b;
  }

  /// By what their users have; the wishes of one user stay in their order. The numbers belong to
  /// the user and not to a wish: the user's first wish has the lowest of them.
  void sort_by_user(std::span<std::size_t> run) {
    std::map<std::uint32_t, std::vector<std::int64_t>> numbers;
    for (const std::size_t place : run) numbers[wishes_[place].uid].push_back(*wishes_[place].fair_number);
    for (auto& [uid, own] : numbers) std::ranges::sort(own, std::ranges::greater{});
    struct Rank {
      std::uint64_t has;
      std::int64_t number;
      std::size_t place;
      auto operator<=>(const Rank&) const = default;
    };
    std::vector<Rank> ranks;
    for (const std::size_t place : run) {
      const Wish& wish = wishes_[place];
      std::uint64_t& has = has_[wish.uid];
      std::vector<std::int64_t>& own = numbers[wish.uid];
      ranks.push_back({has, own.back(), place});
      own.pop_back();
      if (!wish.passed_over) has += wish.count;
    }
    std::ranges::sort(ranks);
    std::ranges::copy(ranks | std::views::transform(&Rank::place), run.begin());
  }

  std::span<const Wish> wishes_;
  std::map<std::uint32_t, std::uint64_t> has_;
  Moment now_;
  std::optional<std::size_t> first_;  ///< comes first of its run, whatever the others are like
};

Moment in_moments(std::int64_t seconds) {
  return seconds * kSecond;
}

std::vector<const Ticket*> in_order(std::vector<const Ticket*> waiting, const std::set<TicketId>& passed_over,
                                    const GpusByUser& has, Moment now) {
  std::ranges::sort(waiting, {}, &Ticket::id);
  std::vector<Wish> wishes;
  for (const Ticket* ticket : waiting)
    wishes.push_back(wish_of(*ticket, ticket->held_back || passed_over.contains(ticket->id)));
  std::vector<const Ticket*> queue;
  for (const std::size_t at : queue_order(wishes, has, now)) queue.push_back(waiting[at]);
  return queue;
}

bool goes_by_ratio_alone(const Ticket& ticket) {
  return ticket.expected_s && !ticket.fair_number;
}

bool has_waited_longest(const Ticket& ticket, Moment now) {
  const Wish wish = wish_of(ticket, false);
  return now - wish.since >= wish.longest_wait;
}

}  // namespace

GpusByUser gpus_by_user(const Ledger& ledger) {
  GpusByUser has;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    has.in_all[ticket.uid] += ticket.devices.size();
    if (!ticket.yield_s) has.firmly[ticket.uid] += ticket.devices.size();
  }
  return has;
}

std::int64_t next_fair_number(std::uint32_t uid, std::span<const Numbered> others) {
  std::optional<std::int64_t> last_granted, first_waiting;
  std::int64_t own = 0;
  for (const Numbered& other : others) {
    const std::int64_t turn = other.fair_number;
    if (other.uid == uid) own = std::max(own, std::min(turn, kLastFairNumber - other.count) + other.count);
    if (other.granted)
      last_granted = std::max(turn, last_granted.value_or(turn));
    else
      first_waiting = std::min(turn, first_waiting.value_or(turn));
  }
  return std::max(own, last_granted.value_or(first_waiting.value_or(0)));
}

std::int64_t next_fair_number(std::uint32_t uid, const Ledger& ledger) {
  std::vector<Numbered> others;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.fair_number)
      others.push_back({ticket.uid, ticket.count, *ticket.fair_number, ticket.phase == TicketPhase::granted});
  }
  return next_fair_number(uid, others);
}

Indices queue_order(std::span<const Wish> wishes, const GpusByUser& has, Moment now) {
  Indices indices(wishes.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto yielding = std::ranges::stable_partition(indices, std::logical_not{},
                                                      [&](std::size_t at) { return wishes[at].yields; });
  const auto firm = static_cast<std::size_t>(yielding.begin() - indices.begin());
  FairOrder(wishes, has.firmly, now).sort(std::span(indices).first(firm));
  FairOrder(wishes, has.in_all, now).sort(std::span(indices).subspan(firm));
  return indices;
}

// By the id, which is chosen in the gate by the boot clock: the wall clock of `joined_s` can be
// set.
Wish wish_of(const Ticket& ticket, bool passed_over) {
  return {.id = ticket.id,
          .uid = ticket.uid,
          .count = ticket.count,
          .shared = ticket.shared,
          .bytes = ticket.promise_bytes,
          .likely = ticket.likely_s.transform(in_moments),
          .expected = ticket.expected_s.transform(in_moments),
          .since = joined_at(ticket),
          .longest_wait = ticket.longest_wait_s.transform(in_moments).value_or(kNever),
          .yields = ticket.yield_s.has_value(),
          .fair_number = ticket.fair_number,
          .passed_over = passed_over};
}

std::vector<const Ticket*> waiting_in_order(const Ledger& ledger, const std::set<TicketId>& passed_over,
                                            Moment now, const Ticket* one_more) {
  std::vector<const Ticket*> waiting;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::waiting) waiting.push_back(&ticket);
  }
  const auto is_it = [&](const Ticket* ticket) { return ticket->id == one_more->id; };
  if (one_more != nullptr && std::ranges::none_of(waiting, is_it)) waiting.push_back(one_more);
  return in_order(std::move(waiting), passed_over, gpus_by_user(ledger), now);
}

std::set<TicketId> those_that_matter(const Ticket& mine, const std::vector<const Ticket*>& waiting,
                                     Moment now) {
  std::set<TicketId> all;
  for (const Ticket* ticket : waiting) all.insert(ticket->id);
  all.erase(mine.id);
  // Of those that have waited for their longest wait, only the first of all has its turn by that.
  // So one that leaves makes it the turn of another.
  const auto may_come_first = [&](const Ticket* ticket) { return has_waited_longest(*ticket, now); };
  if (!goes_by_ratio_alone(mine) || mine.yield_s || may_come_first(&mine) ||
      std::ranges::any_of(waiting, may_come_first))
    return all;
  std::vector<const Ticket*> with_mine{&mine};
  std::ranges::copy_if(waiting, std::back_inserter(with_mine),
                       [&](const Ticket* ticket) { return ticket->id != mine.id; });
  std::set<TicketId> matter;
  bool is_before = true;
  for (const Ticket* ticket : in_order(std::move(with_mine), {}, {}, now)) {
    const bool keeps_others_behind = !ticket->yield_s && !goes_by_ratio_alone(*ticket);
    if (ticket->id == mine.id)
      is_before = false;
    else if (is_before || keeps_others_behind || ticket->id < mine.id)
      matter.insert(ticket->id);
  }
  return matter;
}

}  // namespace berth
