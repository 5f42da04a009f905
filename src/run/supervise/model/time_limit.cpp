#include "berth/supervise/model/time_limit.h"

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

TimeDue take_due(JobTime& job, milliseconds since, const std::optional<milliseconds>& time) {
  const TimeDue now_due = due(job, since);
  if (now_due == TimeDue::none) return now_due;
  if (time && *time != job.time) {
    job = JobTime{.time = *time};
    return TimeDue::none;
  }
  if (now_due == TimeDue::warn) job.warned = true;
  return now_due;
}

milliseconds next_due(const JobTime& job) {
  return job.warned ? job.time : job.time - warning_before(job.time);
}

}  // namespace berth
