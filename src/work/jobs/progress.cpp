#include "berth/jobs/progress.h"

#include <unistd.h>

#include <fmt/format.h>

#include "berth/command/environment.h"
#include "berth/supervise/wait_report.h"
#include "berth/view/jobs.h"
#include "berth/view/text.h"

namespace berth::jobs {

Progress::Progress(std::size_t all, std::size_t done)
    : all_(all), done_(done), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::ended(TaskId id, const TaskStanding& standing, std::string_view command) {
  if (terminal_ && standing.phase == TaskPhase::ended && exit_status_of(standing) == 0) return;
  end();
  command::write_error(view::ended_line(id, standing, command));
}

void Progress::show(const TaskCounts& counts) {
  if (!terminal_ || !supervise::may_draw()) return;
  const view::Style style = command::Environment::style_of(STDERR_FILENO);
  std::string line = view::cut(view::progress_line(counts, all_, done_), style.width - 1);
  if (line == last_) return;
  command::mention(fmt::format("{}{}", view::kClearLine, line));
  last_ = std::move(line);
}

void Progress::end() {
  if (!last_.empty() && supervise::may_draw()) command::mention(view::kClearLine);
  last_.clear();
}

}  // namespace berth::jobs
