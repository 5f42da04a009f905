#pragma once

#include <string>
#include <vector>

#include "berth/cli/named_job.h"
#include "berth/render/jobs.h"

namespace berth::cli {

/// All jobs of the spool. What cannot be read is told, in whole lines.
Result<std::vector<NumberedJob>> all_jobs(const store::JobSpool& spool, std::string& told);

/// What is shown of these jobs: `arrays_as_one`: an array is a line, else each of its tasks. What cannot be
/// read is told, in whole lines.
std::vector<render::ToldTask> told_tasks(const store::JobSpool& spool, std::vector<NumberedJob> jobs,
                                         bool arrays_as_one, std::string& told);

}  // namespace berth::cli
