#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"

namespace berth {

/// Whether something computes on one of these devices. True also if that cannot be known.
bool may_compute(const Snapshot& snapshot, const std::vector<std::string>& uuids);

/// How long nothing has computed, judged by repeated looks. Times are from any steady clock.
class IdleSpan {
 public:
  using Time = std::chrono::milliseconds;

  enum class News { none, idle, computes_again };

  /// Idle means that nothing has computed in any look for `after`.
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
