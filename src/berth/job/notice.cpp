#include "berth/job/notice.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr std::array<std::string_view, 6> kEvents{"start", "end", "fail", "time", "left", "share"};

}  // namespace

std::string_view to_text(NoticeEvent event) {
  return kEvents.at(static_cast<std::size_t>(event));
}

bool is_notice_event(std::string_view text) {
  return std::ranges::find(kEvents, text) != kEvents.end();
}

bool NoticeWish::wants(NoticeEvent event) const {
  if (targets.empty()) return false;
  if (events.empty()) return event != NoticeEvent::start;
  return std::ranges::find(events, to_text(event)) != events.end();
}

}  // namespace berth
