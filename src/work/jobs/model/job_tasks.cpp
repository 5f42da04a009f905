#include "berth/jobs/model/job_tasks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/job/edit_plan.h"

namespace berth::jobs::runner {
namespace {

bool is_busy(KnownJob::TaskStage task) {
  return task == KnownJob::TaskStage::in_queue || task == KnownJob::TaskStage::running;
}

bool has_gpus(KnownJob::TaskStage task) {
  return is_busy(task) || task == KnownJob::TaskStage::left;
}

/// The GPUs that the jobs of tenants have now.
struct GpusOfTenants {
  std::map<std::uint64_t, std::size_t> of_living;
  std::size_t of_gone = 0;

  bool may_have(const KnownJob& job) {
    return job.tenant == 0 || of_living[job.tenant] + of_gone + job.gpus <= job.tenant_gpus;
  }
};

GpusOfTenants gpus_of_tenants(const std::vector<KnownJob>& jobs) {
  GpusOfTenants gpus;
  for (const KnownJob& job : jobs) {
    if (job.tenant == 0) continue;
    std::size_t& its = job.hold == KnownJob::Hold::tenant_gone ? gpus.of_gone : gpus.of_living[job.tenant];
    its += job.gpus * static_cast<std::size_t>(std::ranges::count_if(job.tasks, has_gpus));
  }
  return gpus;
}

// Jobs as they stand before each other.
std::vector<std::size_t> in_order(const std::vector<KnownJob>& jobs) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::ranges::any_of(jobs, [](const KnownJob& job) { return !job.position.empty(); }))
    std::ranges::sort(order, {}, [&](std::size_t each) {
      return std::pair(position_of(jobs[each].number, jobs[each].position), each);
    });
  return order;
}

}  // namespace

std::vector<TaskToStart> tasks_to_start(const std::vector<KnownJob>& jobs) {
  using TaskStage = KnownJob::TaskStage;
  std::set<std::string_view> served;
  for (const KnownJob& job : jobs) {
    if (std::ranges::find(job.tasks, TaskStage::in_queue) != job.tasks.end()) served.insert(job.rivals);
  }
  auto gpus = gpus_of_tenants(jobs);
  std::vector<TaskToStart> chosen;
  for (const std::size_t place : in_order(jobs)) {
    const KnownJob& job = jobs[place];
    if (job.hold != KnownJob::Hold::none) continue;
    if (job.at_once != 0 && std::cmp_greater_equal(std::ranges::count_if(job.tasks, is_busy), job.at_once))
      continue;
    if (!gpus.may_have(job)) continue;
    const auto first = std::ranges::find(job.tasks, TaskStage::waiting);
    if (first == job.tasks.end() || !served.insert(job.rivals).second) continue;
    if (job.tenant != 0) gpus.of_living[job.tenant] += job.gpus;
    chosen.push_back({place, static_cast<std::size_t>(first - job.tasks.begin())});
  }
  return chosen;
}

void lengthen(Backoff& pause, SteadyTime now, SteadyTime first, SteadyTime longest) {
  if (now < pause.until) return;
  pause.length = std::clamp(pause.length * 2, first, longest);
  pause.until = now + pause.length;
}

}  // namespace berth::jobs::runner

namespace berth {
namespace {

std::string end_in_words(const TaskStanding& task) {
  if (task.phase == TaskPhase::interrupted) return "was cut off, by kill -9 or a reboot";
  if (task.phase == TaskPhase::cancelled) return fmt::format("was cancelled: {}", task.reason);
  if (task.signal) return fmt::format("failed: signal {}", *task.signal);
  if (exit_status_of(task) == 0) return "ended with status 0";
  return fmt::format("failed: exit status {}{}", task.exit_status.value_or(1),
                     task.reason.empty() ? "" : ": " + task.reason);
}

}  // namespace

std::optional<EndNotice> end_notice(const std::vector<TaskStanding>& tasks) {
  const auto is_bad = [](const TaskStanding& task) {
    // The user knows of a cancellation.
    if (task.phase == TaskPhase::cancelled) return !task.reason.empty();
    return exit_status_of(task) != 0;
  };
  const auto bad = static_cast<std::size_t>(std::ranges::count_if(tasks, is_bad));
  const TaskCounts counts = counts_of(tasks);
  if (bad == 0 && counts.cancelled != 0) return std::nullopt;
  EndNotice end;
  if (bad != 0) {
    end.event = NoticeEvent::fail;
    end.exit_status = exit_status_of(*std::ranges::find_if(tasks, is_bad));
  }
  end.words = tasks.size() == 1 ? end_in_words(tasks.front())
              : bad == 0        ? fmt::format("ended: all {} tasks with status 0", tasks.size())
                         : fmt::format("ended: {} of {} tasks did not end with status 0", bad, tasks.size());
  return end;
}

}  // namespace berth
