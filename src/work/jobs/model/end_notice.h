#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/job/job.h"
#include "berth/job/notice_wish.h"
#include "berth/job/task_standing.h"

namespace berth {

/// The notice about a job that is over: how its tasks ended. nullopt: no notice, because its user
/// has cancelled it.
struct EndNotice {
  NoticeEvent event = NoticeEvent::end;
  std::string words;  ///< "failed: exit status 3"
  int exit_status = 0;
};
/// REQUIRES: at least one task, and all tasks are over.
std::optional<EndNotice> end_notice(const std::vector<TaskStanding>& tasks);

}  // namespace berth
