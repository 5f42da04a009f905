#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "berth/cli/named_job.h"
#include "berth/render/jobs.h"

namespace berth::cli {

/// All jobs of the spool. What cannot be read is told, in whole lines.
Result<std::vector<NumberedJob>> all_jobs(const store::JobSpool& spool, std::string& told);

/// What is shown of all jobs of the spool, an array as one. What cannot be read is told, in whole lines.
Result<std::vector<render::ToldTask>> all_told(const store::JobSpool& spool, std::string& told);

/// What is shown of these jobs, each task of theirs. What cannot be read is told, in whole lines.
std::vector<render::ToldTask> told_tasks(const store::JobSpool& spool, std::vector<NumberedJob> jobs,
                                         std::string& told);

/// The last lines of what a task has printed, and no more than so many bytes of it. What was cut out of the
/// middle reads as NULs, and is left out. "": nothing, or not yet.
Result<std::string> end_of_output(const std::string& path, std::size_t lines, std::size_t bytes);

}  // namespace berth::cli
