#include "berth/jobs/model/end_notice.h"

#include <algorithm>

#include <fmt/format.h>

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
