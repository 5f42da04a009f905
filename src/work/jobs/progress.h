#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/job/job.h"
#include "berth/job/task_standing.h"

namespace berth::jobs {

/// Tells on the error stream how far many tasks are. On a terminal, as long as we are in the
/// foreground there: a bar, and a line for each task that did not end well. In a pipe: a line for
/// each task that is over.
class Progress {
 public:
  /// `done`: how many of `all` had ended well before.
  Progress(std::size_t all, std::size_t done);

  void ended(TaskId id, const TaskStanding& standing, std::string_view command);
  void show(const TaskCounts& counts);
  /// Clears the bar.
  void end();

 private:
  std::size_t all_;
  std::size_t done_;
  bool terminal_;
  std::string last_;  ///< the bar as it stands
};

}  // namespace berth::jobs
