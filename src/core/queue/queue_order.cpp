#include "berth/queue/queue_order.h"

#include <algorithm>
#include <functional>

#include "berth/queue/host_queue.h"
#include "berth/queue/response_ratio.h"

namespace berth {
namespace {

bool keeps_order_of_coming(const Wish& wish) {
  return !wish.number && !wish.expected;
}

bool keep_same_order(const Wish& a, const Wish& b) {
  return order_of(a.number) == order_of(b.number) && a.expected.has_value() == b.expected.has_value();
}

/// How many of the first wishes may go past each other.
std::size_t length_of_run(std::span<const Wish*> wishes) {
  const Wish& first = *wishes.front();
  if (keeps_order_of_coming(first)) return 1;
  const auto is_wall = [&](const Wish* wish) { return !keep_same_order(*wish, first); };
  return static_cast<std::size_t>(std::ranges::find_if(wishes, is_wall) - wishes.begin());
}

void sort_run(const OrderedRun& run) {
  const Wish& any = *run.wishes.front();
  if (any.expected) sort_by_response_ratio(run.wishes, run.now);
  if (const OrderRow& row = row_of(order_of(any.number)); row.sort != nullptr) row.sort(run);
}

/// Puts wishes of one kind into their order: all of them yield, or none does. `has`: what counts
/// for this kind.
void sort_kind(std::span<const Wish*> wishes, std::map<std::uint32_t, std::uint64_t> has, Moment now) {
  const auto oldest = std::ranges::find_if_not(wishes, &Wish::skipped);
  const Wish* comes_first = nullptr;
  if (oldest != wishes.end() && (*oldest)->expected && has_waited_longest(**oldest, now))
    comes_first = *oldest;
  while (!wishes.empty()) {
    const auto run = wishes.first(length_of_run(wishes));
    wishes = wishes.subspan(run.size());
    sort_run({run, has, now});
    // Whatever the others of its run are like.
    const auto first = std::ranges::find(run, comes_first);
    if (first != run.end()) std::rotate(run.begin(), first, std::next(first));
  }
}

Moment in_moments(std::int64_t seconds) {
  return seconds * kSecond;
}

std::vector<const Ticket*> in_order(std::vector<const Ticket*> waiting, const std::set<TicketId>& skipped,
                                    const GpusByUser& has, Moment now) {
  std::ranges::sort(waiting, {}, &Ticket::id);
  std::vector<Wish> wishes;
  for (const Ticket* ticket : waiting)
    wishes.push_back(wish_of(*ticket, ticket->held_back || skipped.contains(ticket->id)));
  std::vector<const Ticket*> queue;
  for (const std::size_t at : queue_order(wishes, has, now)) queue.push_back(waiting[at]);
  return queue;
}

bool goes_by_ratio_alone(const Ticket& ticket) {
  return ticket.expected_s && !ticket.number;
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

std::vector<std::size_t> queue_order(std::span<const Wish> wishes, const GpusByUser& has, Moment now) {
  std::vector<const Wish*> queue;
  for (const Wish& wish : wishes) queue.push_back(&wish);
  const auto yielding = std::ranges::stable_partition(queue, std::logical_not{}, &Wish::yields);
  const auto firm = static_cast<std::size_t>(yielding.begin() - queue.begin());
  sort_kind(std::span(queue).first(firm), has.firmly, now);
  sort_kind(std::span(queue).subspan(firm), has.in_all, now);
  std::vector<std::size_t> indices;
  for (const Wish* wish : queue) indices.push_back(static_cast<std::size_t>(wish - wishes.data()));
  return indices;
}

// By the id, which is chosen in the gate by the boot clock: the wall clock of `joined_s` can be
// set.
Wish wish_of(const Ticket& ticket, bool skipped) {
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
          .number = ticket.number,
          .skipped = skipped};
}

std::vector<const Ticket*> waiting_in_order(const Ledger& ledger, const std::set<TicketId>& skipped,
                                            Moment now, const Ticket* one_more) {
  std::vector<const Ticket*> waiting;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::waiting) waiting.push_back(&ticket);
  }
  const auto is_it = [&](const Ticket* ticket) { return ticket->id == one_more->id; };
  if (one_more != nullptr && std::ranges::none_of(waiting, is_it)) waiting.push_back(one_more);
  return in_order(std::move(waiting), skipped, gpus_by_user(ledger), now);
}

std::set<TicketId> those_that_matter(const Ticket& mine, const std::vector<const Ticket*>& waiting,
                                     Moment now) {
  std::set<TicketId> all;
  for (const Ticket* ticket : waiting) all.insert(ticket->id);
  all.erase(mine.id);
  // Of those that have waited for their longest wait, only the first of all has its turn by that.
  // So one that leaves makes it the turn of another.
  const auto may_come_first = [&](const Ticket* ticket) {
    return has_waited_longest(wish_of(*ticket, false), now);
  };
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
