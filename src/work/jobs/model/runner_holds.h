#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "berth/jobs/model/runner_step.h"

namespace berth::jobs::runner {

/// Says of each job what keeps its tasks from starting now (KnownJob::hold): its tenant, its
/// conditions, a job of the same name, a pause, or a job that cannot be read now. Gives the
/// questions to which conditions have come.
std::vector<AskWell> hold_jobs(State& state, SteadyTime now, std::int64_t wall_s);

/// When the next of what the runner waits for is due: a pause, a start time, a look at what nobody
/// tells of. nullopt: nothing is.
std::optional<SteadyTime> next_due(const State& state, SteadyTime now, std::int64_t wall_s);

}  // namespace berth::jobs::runner
