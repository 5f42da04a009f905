#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/job.h"
#include "berth/render/json.h"
#include "berth/render/table.h"
#include "berth/render/text.h"

namespace berth::render {

/// A task as users see it, or a whole array in one.
struct ToldTask {
  TaskId id;
  Job job;
  TaskStanding standing;
  std::string output_path;             ///< of the file with what it has printed; of an array ""
  std::optional<TaskCounts> counts{};  ///< of an array
  std::string host{};                  ///< on which it was submitted; "" on this one
};

/// A host whose jobs are not told.
struct UntoldHost {
  std::string host;
  std::string reason;
};

/// The jobs of several hosts.
struct JobsOfHosts {
  std::vector<ToldTask> tasks;
  std::vector<UntoldHost> missing;
};

/// The table of jobs, and a row of it.
std::vector<Column> job_columns();
Row job_row(const ToldTask& task, const Style& style);

std::string jobs_table(const std::vector<ToldTask>& tasks, const Style& style);
std::string jobs_table(const JobsOfHosts& jobs, const Style& style);
/// docs/schema/jobs.json.
std::string jobs_json(const std::vector<ToldTask>& tasks, Layout layout);
std::string jobs_json(const JobsOfHosts& jobs, Layout layout);
/// What another host told by jobs_json, read back as the jobs of this `host`. Whoever wrote it is not
/// trusted. Error: `failure`, with what is no value of ours.
Result<std::vector<ToldTask>> jobs_from_json(std::string_view text, const std::string& host);

/// One that is over, for whoever looks on: "failed    12.7  exit status 3: python train.py 7\n".
std::string ended_line(TaskId id, const TaskStanding& standing, std::string_view command);

/// "[#####.....] 14/40: 8 running, 12 done, 2 failed, 18 waiting": of `all`, `done` have ended well before
/// these.
std::string progress_line(const TaskCounts& counts, std::size_t all, std::size_t done);

/// How a task stands, in a word or two: "waiting", "in line", "running", "failed" …
std::string_view standing_word(const TaskStanding& standing);

}  // namespace berth::render
