#include "berth/job/retry.h"

#include <algorithm>

namespace berth {

bool is_to_be_retried(const Job& job, const TaskStanding& task) {
  const int status = exit_status_of(task);
  if (task.phase != TaskPhase::ended || status == 0 || task.starts == 0 ||
      task.starts - task.excused_starts > job.retries)
    return false;
  return job.retry_on.empty() || std::ranges::find(job.retry_on, status) != job.retry_on.end();
}

bool has_failed(const TaskStanding& task) {
  return task.starts > task.excused_starts;
}

}  // namespace berth
