#include "berth/supervise/model/idle_span.h"

#include <algorithm>

namespace berth {
namespace {

// The driver tells the load of the last moment, so one look means little.
constexpr int kLooks = 30;
constexpr std::chrono::seconds kShortestPeriod{1};
constexpr std::chrono::seconds kLongestPeriod{60};

template <class Judge>
Reading<bool> any_of(const Snapshot& snapshot, const std::vector<std::string>& uuids, const Judge& judge) {
  Reading<bool> any = false;
  for (const std::string& uuid : uuids) {
    const Device* device = find_device(snapshot, uuid);
    const Reading<bool> one = device != nullptr ? judge(*device) : std::nullopt;
    if (one.value_or(false)) return true;
    if (!one) any.reset();
  }
  return any;
}

}  // namespace

Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids) {
  return any_of(snapshot, uuids, [](const Device& device) -> Reading<bool> {
    // Of a MIG instance the driver tells no load: it is known to be idle where no process is on it.
    if (device.utilization_percent) return *device.utilization_percent > 0;
    if (!device.processes) return std::nullopt;
    return !device.processes->empty();
  });
}

Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids,
                           const std::set<std::uint32_t>& pids) {
  return any_of(snapshot, uuids, [&](const Device& device) -> Reading<bool> {
    if (!device.processes) return std::nullopt;
    return std::ranges::any_of(*device.processes,
                               [&](const Process& each) { return pids.contains(each.pid); });
  });
}

void IdleSpan::note(Time now, Reading<bool> computes) {
  const bool may_compute = computes.value_or(true);
  if (may_compute) computed_ = now;
  idle_ = !may_compute && now - computed_ >= after_;
}

std::chrono::seconds IdleSpan::period() const {
  return std::clamp(after_ / kLooks, kShortestPeriod, kLongestPeriod);
}

}  // namespace berth
