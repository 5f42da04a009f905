#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/core/job.h"
#include "berth/core/notice.h"

namespace berth {

/// What there is to tell of a job that is over: how its tasks ended. nullopt: nothing, its user has cancelled
/// it.
struct NoticedEnd {
  NoticeEvent event = NoticeEvent::end;
  std::string words;  ///< "failed: exit status 3"
  int exit_status = 0;
};
/// REQUIRES: all of them are over, and there is one.
std::optional<NoticedEnd> noticed_end(const std::vector<TaskStanding>& tasks);

}  // namespace berth
