#pragma once

#include <string>

#include "berth/cli/anywhere.h"
#include "berth/cli/run.h"

namespace berth::cli {

/// What `berth run --anywhere` was asked to do.
struct AnywhereRun {
  RunOptions run;  ///< settled; of the hooks those that need no lease of ours
  FarOptions far;
};

/// Runs the command on the first of the hosts that grants what it asks for, and gives the exit status that
/// berth is to end with. Does not return when the command was killed by a signal: then this process is too.
/// Error: it has not run, or nobody knows how it ended.
Result<int> run_anywhere(const AnywhereRun& options);

}  // namespace berth::cli
