#include "berth/supervise/model/job_time.h"

#include <algorithm>

namespace berth {

using std::chrono::milliseconds;

milliseconds warning_before(milliseconds time) {
  return std::min<milliseconds>(time / 10, std::chrono::minutes(5));
}

TimeStep due(const JobTime& job, milliseconds since) {
  if (since < next_due(job)) return TimeStep::none;
  return since >= job.time ? TimeStep::over : TimeStep::warn;
}

milliseconds next_due(const JobTime& job) {
  return job.warned ? job.time : job.time - warning_before(job.time);
}

}  // namespace berth
