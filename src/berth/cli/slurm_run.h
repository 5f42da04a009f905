#pragma once

#include "berth/cli/anywhere.h"
#include "berth/cli/command.h"
#include "berth/cli/run.h"
#include "berth/core/error.h"

namespace berth::cli {

/// Replaces this process by srun, which asks Slurm for the same. Error: `usage`, when Slurm cannot be asked
/// for it; `failure`, when srun cannot be started.
Result<Output> run_on_slurm(Environment& environment, const RunOptions& options, const FarOptions& far);

}  // namespace berth::cli
