#pragma once

#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/command/far_options.h"
#include "berth/supervise/run.h"

namespace berth::cli {

/// Replaces this process by srun, which makes the same request to Slurm. Error: `usage` if Slurm has no such
/// request; `failure` if srun cannot be started.
Result<Output> run_on_slurm(Environment& environment, const RunOptions& options, const FarOptions& far);

}  // namespace berth::cli
