#include "berth/queue/order_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/queue/fair_order.h"

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

}  // namespace berth
