#include "berth/verdict/queue_rules.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

struct OrderRow {
  std::string_view name;
  OrderTraits traits;
};

constexpr std::array<OrderRow, 2> kOrders{{
    {"fifo", {.numbers = false, .rule = ""}},
    {"fair", {.numbers = true, .rule = "the user who has fewer GPUs comes first"}},
}};

constexpr std::array<std::string_view, 3> kExpects{"none", "limits", "runs"};

}  // namespace

std::string_view to_text(Expect expect) {
  return kExpects[static_cast<std::size_t>(expect)];
}

Result<Expect> expect_from_text(std::string_view text) {
  const auto found = std::ranges::find(kExpects, text);
  if (found == kExpects.end()) return fail(ErrorCode::usage, "must be \"none\", \"limits\" or \"runs\"");
  return static_cast<Expect>(found - kExpects.begin());
}

std::string_view to_text(QueueOrder order) {
  return kOrders[static_cast<std::size_t>(order)].name;
}

Result<QueueOrder> queue_order_from_text(std::string_view text) {
  const auto found = std::ranges::find(kOrders, text, &OrderRow::name);
  if (found == kOrders.end()) return fail(ErrorCode::usage, "must be \"fifo\" or \"fair\"");
  return static_cast<QueueOrder>(found - kOrders.begin());
}

const OrderTraits& traits_of(QueueOrder order) {
  return kOrders[static_cast<std::size_t>(order)].traits;
}

}  // namespace berth
