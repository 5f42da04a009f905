#pragma once

#include <cstdint>
#include <vector>

#include "berth/jobs/model/runner.h"

namespace berth::runner {

/// Says of each job what keeps its tasks from starting now (KnownJob::hold): its tenant, its
/// conditions, a job of the same name, a pause, or a job that cannot be read now. Gives the
/// questions to which conditions have come.
std::vector<AskWell> hold_jobs(State& state, SteadyTime now, std::int64_t wall_s);

}  // namespace berth::runner
