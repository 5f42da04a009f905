#pragma once

#include <string>

#include "berth/hosts/lab_hosts.h"
#include "berth/supervise/run.h"

namespace berth::hosts {

/// What `berth run --anywhere` was asked to do.
struct AnywhereRun {
  supervise::RunOptions run;  ///< settled; only hooks that need no lease of ours are called
  command::FarOptions far;
};

/// Runs the command on the first host that grants the request, and gives the exit status that berth
/// is to end with. If a signal killed the command, this does not return, but kills this process by
/// the same signal. Error: the command has not run, or nobody knows how it ended.
Result<int> run_anywhere(const AnywhereRun& options);

}  // namespace berth::hosts
