#pragma once

#include "berth/cli/far_options.h"
#include "berth/cli/command.h"
#include "berth/cli/run.h"
#include "berth/core/error.h"

namespace berth::cli {

/// Replaces this process by srun, which makes the same request to Slurm. Error: `usage` if Slurm has no such
/// request; `failure` if srun cannot be started.
Result<Output> run_on_slurm(Environment& environment, const RunOptions& options, const FarOptions& far);

}  // namespace berth::cli
