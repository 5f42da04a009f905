#include "berth/queue/schedule.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <vector>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr auto kOrders = std::to_array<OrderRow>({
    {.order = QueueOrder::fifo,
     .name = "fifo",
     .first = "whoever came first",
     .keys = {.expected = "expected"}},
    // A program that knew the fair order and no run times would rank a ticket by `turn` alone.
    {.order = QueueOrder::fair,
     .name = "fair",
     .first = "the user who has fewer GPUs",
     .keys = {.number = "turn", .number_beside_expected = "user_turn", .expected = "expected"},
     .next = next_fair_number,
     .sort = sort_by_gpus_of_user},
});

consteval bool is_each_where_it_is_looked_for() {
  for (std::size_t at = 0; at < kOrders.size(); ++at) {
    if (kOrders[at].order != static_cast<QueueOrder>(at)) return false;
  }
  return true;
}
static_assert(is_each_where_it_is_looked_for());

// has_numbers alone says whether an order has them.
static_assert(std::ranges::all_of(kOrders, [](const OrderRow& row) {
  const bool needs_them = has_numbers(row.order);
  return (row.next != nullptr) == needs_them && (row.sort != nullptr) == needs_them &&
         row.keys.number.empty() != needs_them && row.keys.number_beside_expected.empty() != needs_them;
}));

/// "a, b or c"
std::string one_of(const std::vector<std::string>& words) {
  const auto [most, last] = std::pair(std::span(words).first(words.size() - 1), words.back());
  return fmt::format("{} or {}", fmt::join(most, ", "), last);
}

}  // namespace

std::span<const OrderRow> order_rows() {
  return kOrders;
}

const OrderRow& row_of(QueueOrder order) {
  return kOrders[static_cast<std::size_t>(order)];
}

std::string_view to_text(QueueOrder order) {
  return row_of(order).name;
}

Result<QueueOrder> queue_order_from_text(std::string_view text) {
  const auto found = std::ranges::find(kOrders, text, &OrderRow::name);
  if (found != kOrders.end()) return found->order;
  std::vector<std::string> names;
  for (const OrderRow& row : kOrders) names.push_back(fmt::format("\"{}\"", row.name));
  return fail(ErrorCode::usage, fmt::format("must be {}", one_of(names)));
}

std::string rule_in_words(QueueOrder order) {
  return has_numbers(order) ? fmt::format("{} comes first", row_of(order).first) : "";
}

std::string orders_in_words() {
  std::vector<std::string> words;
  for (const OrderRow& row : kOrders) words.push_back(fmt::format("{} ({})", row.name, row.first));
  return one_of(words);
}

std::optional<OrderNumber> next_number(QueueOrder order, std::uint32_t uid, std::vector<Numbered> others) {
  if (!has_numbers(order)) return std::nullopt;
  std::erase_if(others, [&](const Numbered& other) { return other.number.order != order; });
  return OrderNumber{order, row_of(order).next(uid, others)};
}

std::optional<OrderNumber> next_number(QueueOrder order, std::uint32_t uid, const Ledger& ledger) {
  if (!has_numbers(order)) return std::nullopt;
  std::vector<Numbered> others;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.number)
      others.push_back({ticket.uid, ticket.count, *ticket.number, ticket.phase == TicketPhase::granted});
  }
  return next_number(order, uid, std::move(others));
}

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

// By the boot clock: the wall clock of `joined_s` can be set. The id says it too, but a ticket of
// another user with an id ahead of the clock moves all later ids.
Wish wish_of(const Ticket& ticket, bool skipped) {
  return {.id = ticket.id,
          .uid = ticket.uid,
          .count = ticket.count,
          .shared = ticket.shared,
          .bytes = ticket.promise_bytes,
          .likely = ticket.likely_s.transform(in_moments),
          .expected = ticket.expected_s.transform(in_moments),
          .since = ticket.joined_boot_ms.value_or(joined_at(ticket)),
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

std::int64_t next_fair_number(std::uint32_t uid, std::span<const Numbered> others) {
  std::optional<std::int64_t> last_granted, first_waiting;
  std::int64_t own = 0;
  for (const Numbered& other : others) {
    const std::int64_t turn = other.number.value;
    if (other.uid == uid) own = std::max(own, std::min(turn, kLastOrderNumber - other.count) + other.count);
    if (other.granted)
      last_granted = std::max(turn, last_granted.value_or(turn));
    else
      first_waiting = std::min(turn, first_waiting.value_or(turn));
  }
  return std::max(own, last_granted.value_or(first_waiting.value_or(0)));
}

void sort_by_gpus_of_user(const OrderedRun& run) {
  std::map<std::uint32_t, std::vector<std::int64_t>> numbers;
  for (const Wish* wish : run.wishes) numbers[wish->uid].push_back(wish->number->value);
  for (auto& [uid, own] : numbers) std::ranges::sort(own, std::ranges::greater{});
  struct Rank {
    std::uint64_t has;
    std::int64_t number;
    const Wish* wish;  // stands where it came
    auto operator<=>(const Rank&) const = default;
  };
  std::vector<Rank> ranks;
  for (const Wish* wish : run.wishes) {
    std::uint64_t& has = run.has[wish->uid];
    std::vector<std::int64_t>& own = numbers[wish->uid];
    ranks.push_back({has, own.back(), wish});
    own.pop_back();
    if (!wish->skipped) has += wish->count;
  }
  std::ranges::sort(ranks);
  std::ranges::copy(ranks | std::views::transform(&Rank::wish), run.wishes.begin());
}

namespace {

constexpr Moment kLongestAge = 10LL * 365 * 86'400 * kSecond;
// The product of an age and a run time needs more than 64 bits.
__extension__ using Wide = unsigned __int128;

Moment waited(const Wish& wish, Moment now) {
  return std::clamp<Moment>(now - wish.since, 0, kLongestAge);
}

bool has_larger_ratio(const Wish& a, const Wish& b, Moment now) {
  return static_cast<Wide>(waited(a, now)) * static_cast<Wide>(*b.expected) >
         static_cast<Wide>(waited(b, now)) * static_cast<Wide>(*a.expected);
}

}  // namespace

void sort_by_response_ratio(std::span<const Wish*> wishes, Moment now) {
  std::ranges::stable_sort(wishes,
                           [&](const Wish* a, const Wish* b) { return has_larger_ratio(*a, *b, now); });
}

bool has_waited_longest(const Wish& wish, Moment now) {
  return waited(wish, now) >= wish.longest_wait;
}

namespace {

__extension__ using Signed = __int128;

/// When one wish comes before another: from `first` to `last`, both included.
struct Before {
  Moment first = 0;
  Moment last = kNever;
};

// By a(t) / expected > b(t) / expected, with ages that grow by one in each moment. So the longer
// one comes first up to some moment, and the shorter one from then on.
Before before(const Wish& mine, const Wish& other) {
  const Signed grows = *other.expected - *mine.expected;
  const Signed must_exceed =
      static_cast<Signed>(mine.since) * *other.expected - static_cast<Signed>(other.since) * *mine.expected;
  const Moment wins_a_tie = mine.id < other.id ? 1 : 0;
  if (grows == 0) return must_exceed < wins_a_tie ? Before{} : Before{kNever, 0};
  // Rounded down, also below 0.
  const auto floor = [](Signed of, Signed by) { return of / by - (of % by < 0 ? 1 : 0); };
  if (grows > 0) {
    const auto tie = static_cast<Moment>(floor(must_exceed - wins_a_tie, grows));
    return {tie + 1, kNever};
  }
  return {0, static_cast<Moment>(floor(-must_exceed - 1 + wins_a_tie, -grows))};
}

}  // namespace

std::optional<Moment> first_from(const Ticket& mine, const std::vector<const Ticket*>& others, Moment now) {
  const auto goes_by_it = [&](const Ticket& ticket) {
    return goes_by_ratio_alone(ticket) && ticket.yield_s.has_value() == mine.yield_s.has_value();
  };
  if (!goes_by_it(mine)) return std::nullopt;
  const Wish wish = wish_of(mine, false);
  Before all{now, kNever};
  for (const Ticket* ticket : others) {
    if (!goes_by_it(*ticket)) return std::nullopt;
    const Wish other = wish_of(*ticket, false);
    const auto [first, last] = before(wish, other);
    all = {std::max(all.first, first), std::min(all.last, last)};
  }
  const auto comes_by_age = [&](const Ticket* ticket) {
    return has_waited_longest(wish_of(*ticket, false), all.first);
  };
  if (all.first < kNever && std::ranges::any_of(others, comes_by_age)) return std::nullopt;
  return all.first <= all.last && all.first < kNever ? std::optional(all.first) : std::nullopt;
}

}  // namespace berth
