#include "berth/job/notice_wish.h"

#include <algorithm>

namespace berth {

bool NoticeWish::wants(NoticeEvent event) const {
  if (targets.empty()) return false;
  if (events.empty()) return event != NoticeEvent::start;
  return std::ranges::find(events, to_text(event)) != events.end();
}

}  // namespace berth
