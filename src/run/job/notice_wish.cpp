#include "berth/job/notice_wish.h"

#include <algorithm>

#include "berth/base/fail.h"

namespace berth {

bool NoticeWish::wants(NoticeEvent event) const {
  if (targets.empty()) return false;
  if (events.empty()) return event != NoticeEvent::start;
  return std::ranges::find(events, to_text(event)) != events.end();
}

Result<void> check(const NoticeWish& wish) {
  if (wish.targets.empty() && !wish.events.empty())
    return fail(ErrorCode::usage, "--notify-on says when to tell: --notify says whom");
  return {};
}

}  // namespace berth
