#include "berth/supervise/model/idle_span.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

// The driver tells the load of the last moment, so one look means little.
constexpr int kLooks = 30;
constexpr std::chrono::seconds kShortestPeriod{1};
constexpr std::chrono::seconds kLongestPeriod{60};

}  // namespace

bool may_compute(const Snapshot& snapshot, const std::vector<std::string>& uuids) {
  return std::ranges::any_of(uuids, [&](const std::string& uuid) {
    const Device* device = find_device(snapshot, uuid);
    if (device == nullptr) return true;
    // Of a MIG instance the driver tells no load: it is known to be idle where no process is on it.
    if (device->utilization_percent) return *device->utilization_percent > 0;
    return !device->processes || !device->processes->empty();
  });
}

IdleSpan::News IdleSpan::note(Time now, bool computes) {
  if (computes) {
    computed_ = now;
    return std::exchange(idle_, false) ? News::computes_again : News::none;
  }
  if (idle_ || now - computed_ < after_) return News::none;
  idle_ = true;
  return News::idle;
}

std::chrono::seconds IdleSpan::period() const {
  return std::clamp(after_ / kLooks, kShortestPeriod, kLongestPeriod);
}

}  // namespace berth
