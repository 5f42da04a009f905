#pragma once

#include "berth/job/job.h"
#include "berth/job/task_standing.h"

/// What happens to a task, and how it then stands.
namespace berth::test {

inline TaskEvent event(TaskEventKind kind, std::int64_t at_s = 100) {
  TaskEvent made;
  made.kind = kind;
  made.at_s = at_s;
  made.boot = "b";
  return made;
}

inline TaskEvent ended(int exit_status) {
  TaskEvent made = event(TaskEventKind::ended, 200);
  made.exit_status = exit_status;
  return made;
}

inline TaskStanding after(std::vector<TaskEvent> events, bool held = false) {
  return standing_of(events, held);
}

}  // namespace berth::test
