#pragma once

#include <string>
#include <vector>

#include "berth/core/job.h"
#include "berth/render/json.h"
#include "berth/render/text.h"

namespace berth::render {

/// A task as users see it, or a whole array in one.
struct ToldTask {
  TaskId id;
  Job job;
  TaskStanding standing;
  std::string output_path;             ///< of the file with what it has printed; of an array ""
  std::optional<TaskCounts> counts{};  ///< of an array
};

std::string jobs_table(const std::vector<ToldTask>& tasks, const Style& style);
/// docs/schema/jobs.json.
std::string jobs_json(const std::vector<ToldTask>& tasks, Layout layout);

/// How a task stands, in a word or two: "waiting", "in line", "running", "failed" …
std::string_view standing_word(const TaskStanding& standing);

}  // namespace berth::render
