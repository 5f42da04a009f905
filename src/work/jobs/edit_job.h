#pragma once

#include <string>
#include <vector>

#include "berth/command/environment.h"
#include "berth/job/edit_plan.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/named_job.h"

namespace berth::jobs {

/// A job that was edited.
struct EditedJob {
  std::string told;     ///< what has happened, a sentence
  std::string trouble;  ///< what could not be done beside it, whole lines
};
/// Edits a waiting job as the wish says. `request`: options of the
/// request, each of which takes the place of the same option. The job is edited as a whole or not
/// at all, whoever is killed. Error: as plan_edit and, for a request, as `berth submit`; the job is
/// as it was.
Result<EditedJob> edit_job(command::Environment& environment, const JobSpool& spool, const NumberedJob& job,
                           EditWish wish, const std::vector<std::string>& request);

/// A job that is held may have given its place in the queue of the machine to this one, which was
/// cancelled since: the next one gets it, or its process leaves the queue. Error: `failure`.
Result<void> pass_on_after_cancel(const JobSpool& spool, const Job& cancelled, std::uint64_t number);

}  // namespace berth::jobs
