#include "berth/source/nvml/xid_events.h"

#include <algorithm>

#include "berth/device/xid.h"

namespace berth::nvml {

void XidEvents::take(Library& library) {
  if (set_ == nullptr) {
    if (library.call(library.create_event_set, &set_) != kSuccess) set_ = nullptr;
    return;
  }
  // A driver that always has one more would keep us here.
  constexpr int kMostEvents = 256;
  for (int i = 0; i < kMostEvents; ++i) {
    Event event{};
    if (library.call(library.wait_for_event, set_, &event, 0U) != kSuccess) return;
    const auto of = std::ranges::find_if(
        watched_, [&](const auto& watched) { return watched.second.handle == event.device; });
    if (event.type != kXidEvent || of == watched_.end()) continue;
    const auto number = static_cast<unsigned>(std::min<std::uint64_t>(event.data, kAbsent32));
    of->second.xid = more_telling_xid(of->second.xid, number);
  }
}

void XidEvents::watch(Library& library, unsigned index) {
  if (set_ == nullptr || watched_.contains(index)) return;
  Handle handle = nullptr;
  if (library.call(library.handle, index, &handle) != kSuccess) return;
  // A GPU that has no such events is not asked again.
  (void)library.call(library.register_events, handle, kXidEvent, set_);
  watched_[index] = {handle};
}

void XidEvents::note(Device& device) const {
  const auto found = watched_.find(device.index);
  if (!device.health.last_xid && found != watched_.end() && found->second.xid != 0)
    device.health.last_xid = found->second.xid;
}

}  // namespace berth::nvml
