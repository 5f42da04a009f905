#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "berth/core/snapshot.h"

namespace berth {

/// Whether something computes on one of these devices. True also where that cannot be known.
bool may_compute(const Snapshot& snapshot, const std::vector<std::string>& uuids);

/// For how long nothing has computed, by looks that are made now and then. Times are by any clock that goes
/// on steadily.
class IdleSpan {
 public:
  using Time = std::chrono::milliseconds;

  enum class News { none, idle, computes_again };

  /// Idle is what has not computed in any look for `after`.
  IdleSpan(std::chrono::seconds after, Time now) : after_(after), computed_(now) {}

  News note(Time now, bool computes);
  bool is_idle() const { return idle_; }
  std::chrono::seconds after() const { return after_; }
  /// Between two looks.
  std::chrono::seconds period() const;

 private:
  std::chrono::seconds after_;
  Time computed_;
  bool idle_ = false;
};

}  // namespace berth
