#pragma once

#include <cstdint>
#include <limits>

namespace berth {

/// Of the boot clock, which nobody can set. The queue counts milliseconds, a replay seconds: Line::second
/// says which.
using Moment = std::int64_t;
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();

/// Which request has its turn first.
enum class TurnOrder {
  fifo,  ///< the one that came first
  fair,  ///< that of the user with fewer GPUs (src/berth/queue/turn_order.h)
};

/// The rules of a site for its line.
struct LineRules {
  Moment assumed_s = 3600;  ///< how long a request without a time limit is assumed to last
  /// false: nobody starts in front of an earlier rival.
  bool backfill = true;
  TurnOrder order = TurnOrder::fifo;

  /// Whether a request can be given devices that an earlier one waits for.
  bool lets_others_pass() const { return backfill || order == TurnOrder::fair; }

  bool operator==(const LineRules&) const = default;
};

}  // namespace berth
