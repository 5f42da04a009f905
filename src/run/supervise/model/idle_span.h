#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"

namespace berth {

/// What tells whether something computes.
inline constexpr ReadingSet kReadingsOfLoad = ReadingKind::utilization | ReadingKind::processes;
/// Whether something computes on one of these devices, by their load. Absent: not known.
Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids);
/// Whether one of these processes does. Absent: not known.
Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids,
                           const std::set<std::uint32_t>& pids);

/// How long nothing has computed, judged by repeated looks, and whether others know that. Times are
/// from any steady clock.
class IdleSpan {
 public:
  using Time = std::chrono::milliseconds;

  /// Idle means that nothing has computed in any look for `after`.
  IdleSpan(std::chrono::seconds after, Time now) : after_(after), computed_(now) {}

  /// `computes`: absent counts as true, since nobody may lose a lease that may be used.
  void note(Time now, Reading<bool> computes);
  bool is_idle() const { return idle_; }
  /// Whether its holder may end it for a waiter: others may have to be told first, and are not yet.
  bool gives_way() const { return idle_ && told_; }
  std::chrono::seconds after() const { return after_; }
  /// Whether others have to be told that it is idle now, or that it no longer is.
  bool has_news() const { return idle_ != told_; }
  void has_told() { told_ = idle_; }
  /// Between two looks.
  std::chrono::seconds period() const;

 private:
  std::chrono::seconds after_;
  Time computed_;
  bool idle_ = false;
  bool told_ = false;  ///< what others know: that it is idle
};

}  // namespace berth
