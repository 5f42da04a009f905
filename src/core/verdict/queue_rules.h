#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "berth/base/error.h"
#include "berth/base/words.h"

namespace berth {

/// Of the boot clock, which nobody can set. The queue counts milliseconds, a replay seconds:
/// QueueState::second says which.
using Moment = std::int64_t;
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();

/// Which request has its turn first. An order is added here, and with a row in
/// queue/order_table.cpp, which says all else of it.
enum class QueueOrder {
  fifo,  ///< the one that came first
  fair,  ///< that of the user with fewer GPUs
};

/// Whether a request gets a number for this order when it joins. That of coming needs none: the ids
/// say it.
constexpr bool has_numbers(QueueOrder order) {
  return order != QueueOrder::fifo;
}

/// Carried by a request that keeps another order than that of coming. The row of the order says
/// what the number means. Requests that keep different orders do not go past each other.
struct OrderNumber {
  QueueOrder order = QueueOrder::fifo;  ///< one that has_numbers
  std::int64_t value = 0;

  bool operator==(const OrderNumber&) const = default;
};
inline constexpr std::int64_t kLastOrderNumber = std::numeric_limits<std::int64_t>::max();

/// Which run times count for the order of the queue.
enum class Expect {
  none,    ///< none: they say only how long devices are kept
  limits,  ///< the time limits that jobs give
  runs,    ///< these, and how long earlier runs of the same thing lasted
};
constexpr auto words_of(Expect) {
  return std::to_array<std::string_view>({"none", "limits", "runs"});
}
Result<Expect> expect_from_text(std::string_view text);  ///< Error: `usage`, what it must be

/// A shorter one would make the order that of coming.
inline constexpr Moment kLeastLongestWaitS = 86'400;

/// The rules of a site for its queue.
struct QueueRules {
  Moment assumed_s = 3600;  ///< how long a request without a time limit is assumed to last
  /// false: nobody starts in front of an earlier rival.
  bool backfill = true;
  QueueOrder order = QueueOrder::fifo;
  /// Other than none: of two requests the one comes first that has waited longer in relation to how
  /// long it is expected to last. `order` stays the rule between users.
  Expect expect = Expect::none;
  /// Where run times count: the request that came first has its turn first once it has waited so
  /// long.
  Moment longest_wait_s = 21 * 86'400;

  /// Whether the one that came first does not always have its turn first.
  bool orders_by_more_than_coming() const { return has_numbers(order) || expect != Expect::none; }
  /// Whether a request can be given devices that an earlier one waits for.
  bool lets_others_pass() const { return backfill || orders_by_more_than_coming(); }

  bool operator==(const QueueRules&) const = default;
};

}  // namespace berth
