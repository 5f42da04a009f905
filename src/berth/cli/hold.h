#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

#include "berth/cli/command.h"
#include "berth/lease/acquire.h"

namespace berth::cli {

/// When a keeper ends its lease by itself: with whichever comes first.
struct KeptUntil {
  std::optional<std::chrono::seconds> time;  ///< by a clock that goes on while the machine sleeps
  std::optional<pid_t> process;              ///< that process ends
};

/// A lease to be kept, and what to answer to the user.
struct Kept {
  leasing::HeldLease lease;
  Output answer;
};

/// Runs `take` in a process of its own, a keeper. When that has given its answer it stays behind and holds
/// the lease, without terminal, standard streams or anything else of the caller's: a shell that reads the
/// answer does not wait for it. Killing it ends the lease at once. Gives the status that the keeper answered
/// with; all that it had to say has been written. Error: the process of `until` has ended. The
/// probe goes to the keeper. REQUIRES: one thread.
Result<Output> leave_keeper(Environment& environment, const KeptUntil& until,
                            const std::function<Result<Kept>()>& take);

}  // namespace berth::cli
