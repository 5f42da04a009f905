#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/queue/backfill.h"

// The table of the orders of the queue. A row is all that there is of an order. Tickets, the store
// of a lab, the site file, messages, both queues and the replay walk the rows.
//
// Two rules hold for every order and stand in queue_order alone: requests that yield come last, and
// no request goes past one of another order. An order sees only wishes that may go past each other.
namespace berth {

/// A live ticket with a number, waiting or granted.
struct Numbered {
  std::uint32_t uid = 0;
  unsigned count = 1;
  OrderNumber number{};
  bool granted = false;
};

/// Wishes that keep one order, with none of another order between them.
struct OrderedRun {
  /// As they came, or by response ratio where run times count. All are of one array, in which they
  /// stand as they came.
  std::span<const Wish*> wishes;
  /// How many GPUs each user has, by uid, with those that wishes of earlier runs ask for. An order
  /// that goes by them adds those of this run.
  std::map<std::uint32_t, std::uint64_t>& has;
  Moment now = 0;  ///< 0 in the lab, whose hosts share no clock
};

/// How a ticket says which order it keeps. A ticket with none of the keys that a program knows
/// keeps the order of coming, as that program sees it. So a program must know either all keys of a
/// ticket or none of them: else it ranks the ticket by a part, and two may wait for each other.
struct OrderKeys {
  std::string_view number{};  ///< also in the store of a lab
  /// Where run times count: of the number, and of the time that is expected.
  std::string_view number_beside_expected{};
  std::string_view expected{};
};

/// A row of the table.
struct OrderRow {
  QueueOrder order = QueueOrder::fifo;
  std::string_view name{};   ///< in the site file, and of an option
  std::string_view first{};  ///< for people: who comes first
  OrderKeys keys{};
  /// The number of a new request of a user, from the tickets that keep this order. nullptr: it
  /// needs none.
  std::int64_t (*next)(std::uint32_t uid, std::span<const Numbered> others) = nullptr;
  /// Puts the wishes into the order. nullptr: they are. A function of what is given alone, so that
  /// all who ask agree.
  void (*sort)(const OrderedRun& run) = nullptr;
};

/// The table.
std::span<const OrderRow> order_rows();
const OrderRow& row_of(QueueOrder order);

/// The order that a ticket with this number keeps.
inline QueueOrder order_of(const std::optional<OrderNumber>& number) {
  return number ? number->order : QueueOrder::fifo;
}

std::string_view to_text(QueueOrder order);                       ///< as in the site file: "fifo"
Result<QueueOrder> queue_order_from_text(std::string_view text);  ///< Error: `usage`, what it must be
/// "the user who has fewer GPUs comes first"; "" for the usual order.
std::string rule_in_words(QueueOrder order);
/// "fifo (whoever came first) or fair (the user who has fewer GPUs)"
std::string orders_in_words();

/// The number for a new request of a user, given the live tickets that have one of any order.
/// nullopt: this order has no numbers.
std::optional<OrderNumber> next_number(QueueOrder order, std::uint32_t uid, std::vector<Numbered> others);
std::optional<OrderNumber> next_number(QueueOrder order, std::uint32_t uid, const Ledger& ledger);

}  // namespace berth
