#pragma once

#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/command/far_options.h"
#include "berth/supervise/run.h"

namespace berth::supervise {

/// Replaces this process by srun, which makes the same request to Slurm. Error: `usage` if Slurm
/// has no such request; `failure` if srun cannot be started.
Result<command::Output> run_on_slurm(command::Environment& environment, const RunOptions& options,
                                     const command::FarOptions& far);

}  // namespace berth::supervise
