#include "berth/cli/told_jobs.h"

#include "berth/cli/question.h"

namespace berth::cli {

Result<std::vector<NumberedJob>> all_jobs(const store::JobSpool& spool, std::string& told) {
  BERTH_LET(const auto numbers, spool.numbers());
  std::vector<NumberedJob> jobs;
  jobs.reserve(numbers.size());
  for (const std::uint64_t number : numbers) {
    auto job = spool.job(number);
    if (!job) told += as_lines({job.error().message});
    // Else it was forgotten meanwhile.
    if (job && *job) jobs.push_back({number, **std::move(job)});
  }
  return jobs;
}

std::vector<render::ToldTask> told_tasks(const store::JobSpool& spool, std::vector<NumberedJob> jobs,
                                         bool arrays_as_one, std::string& told) {
  std::vector<render::ToldTask> tasks;
  for (NumberedJob& job : jobs) {
    const auto standings = standings_of(spool, job);
    if (!standings) {
      told += as_lines({standings.error().message});
      continue;
    }
    const std::vector<TaskId> ids = job.tasks();
    if (arrays_as_one && ids.size() > 1) {
      TaskStanding all = standing_of_all(*standings);
      // A notice is about the job as a whole.
      if (!job.job.notify.targets.empty()) {
        if (const auto whole = spool.standing({job.number, {}})) all.not_told = whole->not_told;
      }
      tasks.push_back({{job.number, {}}, std::move(job.job), std::move(all), "", counts_of(*standings)});
      continue;
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      tasks.push_back({ids[i], job.job, (*standings)[i], spool.output_path(ids[i])});
  }
  return tasks;
}

}  // namespace berth::cli
