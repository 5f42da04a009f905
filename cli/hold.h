#pragma once

#include <chrono>

#include "berth/core/error.h"
#include "berth/lease/acquire.h"

namespace berth::cli {

/// Leaves a process behind that holds the lease for so long and then ends it. It has no terminal and none of
/// this process's standard descriptors, so a shell that reads the answer does not wait for it; killing it
/// ends the lease at once. REQUIRES: one thread; the probe has been ended.
Result<void> leave_keeper(leasing::HeldLease& lease, std::chrono::seconds time);

}  // namespace berth::cli
