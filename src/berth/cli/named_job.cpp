#include "berth/cli/named_job.h"

#include <poll.h>

#include <chrono>
#include <csignal>

#include <fmt/format.h>

#include "berth/core/printable.h"
#include "berth/sys/process_identity.h"

namespace berth::cli {
namespace {

constexpr int kMomentMs = 100;

// Its `berth run`, if that is still the process that took it.
bool ask_to_end(const TaskStanding& standing) {
  const auto pid = static_cast<pid_t>(standing.pid);
  if (pid == 0 || standing.boot != store::boot_id()) return false;
  const auto stat = sys::process_stat(pid);
  return stat && stat->start_ticks == standing.pid_start_ticks && ::kill(pid, SIGTERM) == 0;
}

}  // namespace

void sleep_a_moment() {
  ::poll(nullptr, 0, kMomentMs);
}

Result<std::optional<TaskId>> job_named(const store::JobSpool& spool, std::string_view word) {
  const auto id = task_id_from_text(word);
  if (!id) return std::nullopt;
  BERTH_LET(const auto job, spool.job(id->job));
  return job && !id->index ? id : std::nullopt;
}

Result<std::vector<TaskId>> named_jobs(const store::JobSpool& spool, const std::vector<std::string>& words) {
  std::vector<TaskId> ids;
  for (const std::string& word : words) {
    if (!task_id_from_text(word))
      return fail(ErrorCode::usage,
                  fmt::format("'{}' is no number of a job; `berth jobs` has them", printable(word)));
    BERTH_LET(const auto id, job_named(spool, word));
    if (!id)
      return fail(
          ErrorCode::failure,
          fmt::format("there is no job {} of yours on this machine; `berth jobs` shows those there are",
                      word));
    ids.push_back(*id);
  }
  return ids;
}

Result<std::string> cancel_task(const store::JobSpool& spool, TaskId id, std::chrono::milliseconds patience) {
  BERTH_LET(const auto before, spool.standing(id));
  if (is_over(before))
    return fail(ErrorCode::failure,
                fmt::format("job {} is over already ({})", to_text(id), to_text(before.phase)));
  TaskEvent event;
  event.step = TaskStep::cancelled;
  BERTH_DO(spool.append(id, std::move(event)));
  BERTH_LET(auto standing, spool.standing(id));
  ask_to_end(standing);
  spool.ring(id.job);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!is_over(standing)) {
    if (std::chrono::steady_clock::now() >= until)
      return fail(ErrorCode::timed_out,
                  fmt::format("job {} was asked to end (SIGTERM), and still runs: pid {}", to_text(id),
                              standing.pid));
    sleep_a_moment();
    BERTH_LET(standing, spool.standing(id));
  }
  return standing.phase == TaskPhase::ended ? fmt::format("job {} has ended by itself meanwhile", to_text(id))
                                            : fmt::format("cancelled job {}", to_text(id));
}

}  // namespace berth::cli
