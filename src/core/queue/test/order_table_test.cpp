// Each row of the table of orders is as a row must be, also one that is added later.
#include "berth/queue/schedule.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "berth/queue/test/any_order.h"
#include "property.h"

namespace berth::order_table_test {
namespace {

using test::any_order;

TEST_CASE("each order has a name of its own, and an order with numbers all that it takes to have them") {
  std::set<std::string_view> names, keys;
  for (const OrderRow& row : order_rows()) {
    CAPTURE(row.name);
    CHECK(queue_order_from_text(row.name) == row.order);
    CHECK(to_text(row.order) == row.name);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.first.empty());
    CHECK_FALSE(row.keys.expected.empty());
    if (!has_numbers(row.order)) continue;
    CHECK(keys.insert(row.keys.number).second);
    CHECK((row.keys.number_beside_expected == row.keys.number ||
           keys.insert(row.keys.number_beside_expected).second));
  }
}

TEST_CASE("an order that is new hides what is expected from programs that do not know it") {
  // They would rank a ticket by its run time alone, and not know what it goes by beside that.
  for (const OrderRow& row : order_rows()) {
    CAPTURE(row.name);
    const bool is_as_old_as_run_times = row.order == QueueOrder::fifo || row.order == QueueOrder::fair;
    CHECK((row.keys.expected == "expected") == is_as_old_as_run_times);
  }
}

TEST_CASE("people are told each order, and what else they may write") {
  CHECK(rule_in_words(QueueOrder::fifo).empty());
  CHECK(rule_in_words(QueueOrder::fair) == "the user who has fewer GPUs comes first");
  CHECK(orders_in_words().starts_with("fifo (whoever came first)"));
  const auto wrong = queue_order_from_text("fairly");
  REQUIRE_FALSE(wrong.has_value());
  for (const OrderRow& row : order_rows()) {
    CHECK(wrong.error().message.contains("\"" + std::string(row.name) + "\""));
    CHECK(orders_in_words().contains(std::string(row.name) + " (" + std::string(row.first) + ")"));
  }
}

TEST_CASE("the order of coming has no numbers, and any other has one for whoever comes first of all") {
  for (const OrderRow& row : order_rows()) {
    const auto number = next_number(row.order, 1000, std::vector<Numbered>{});
    REQUIRE(number.has_value() == has_numbers(row.order));
    CHECK(order_of(number) == row.order);
  }
}

std::vector<Wish> any_wishes_in(QueueOrder order) {
  std::vector<Wish> wishes;
  std::vector<Numbered> others;
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    Wish one{.id = {wishes.size() + 1},
             .uid = *rc::gen::inRange(1U, 4U),
             .count = *rc::gen::inRange(1U, 5U),
             .since = static_cast<Moment>(100 * wishes.size())};
    one.yields = *rc::gen::inRange(0, 4) == 0;
    if (*rc::gen::arbitrary<bool>()) one.expected = *rc::gen::inRange<Moment>(60, 5000);
    one.number = next_number(order, one.uid, others);
    if (*rc::gen::inRange(0, 5) == 0) one.number.reset();
    if (one.number) others.push_back({one.uid, one.count, *one.number, *rc::gen::arbitrary<bool>()});
    wishes.push_back(one);
  }
  return wishes;
}

TEST_CASE("in each order, those that yield come last, and nobody goes past one of another order") {
  holds_for_any([] {
    const std::vector<Wish> wishes = any_wishes_in(any_order());
    const std::vector<std::size_t> turns = queue_order(wishes, {}, 10'000);
    std::vector<std::size_t> sorted = turns;
    std::ranges::sort(sorted);
    for (std::size_t at = 0; at < wishes.size(); ++at) RC_ASSERT(sorted[at] == at);
    const auto keeps_another = [](const Wish& a, const Wish& b) {
      return order_of(a.number) != order_of(b.number) || a.expected.has_value() != b.expected.has_value();
    };
    for (std::size_t first = 0; first < turns.size(); ++first) {
      for (std::size_t second = first + 1; second < turns.size(); ++second) {
        const Wish& a = wishes[turns[first]];
        const Wish& b = wishes[turns[second]];
        RC_ASSERT(!a.yields || b.yields);
        if (a.yields == b.yields && keeps_another(a, b)) RC_ASSERT(turns[first] < turns[second]);
      }
    }
  });
}

}  // namespace
}  // namespace berth::order_table_test
