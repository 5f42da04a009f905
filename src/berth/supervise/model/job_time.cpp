#include "berth/supervise/model/job_time.h"

#include <algorithm>

namespace berth {

using std::chrono::milliseconds;

milliseconds warning_before(milliseconds time) {
  return std::min<milliseconds>(time / 10, std::chrono::minutes(5));
}

TimeDue due(const JobTime& job, milliseconds since) {
  if (since < next_due(job)) return TimeDue::none;
  return since >= job.time ? TimeDue::over : TimeDue::warn;
}

milliseconds next_due(const JobTime& job) {
  return job.warned ? job.time : job.time - warning_before(job.time);
}

}  // namespace berth
