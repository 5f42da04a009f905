#pragma once

#include <string>
#include <vector>

#include "berth/job/job.h"
#include "berth/request/lab_host.h"
#include "berth/view/jobs.h"

namespace berth::jobs {

/// The user's jobs on each of these hosts, asked through ssh, all at once; `states`: those in these
/// states alone, all if there are none. A host that does not answer is in `missing`.
view::JobsOfHosts look_at_jobs(const std::vector<LabHost>& hosts,
                               const std::vector<std::string>& states = {});

/// The one of these hosts that has a job of this number. Error: none has, or several have.
Result<LabHost> host_of_job(const std::vector<LabHost>& hosts, TaskId id);

}  // namespace berth::jobs
