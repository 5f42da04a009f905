#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "berth/cli/command.h"
#include "berth/core/notice.h"
#include "berth/lease/acquire.h"

namespace berth::cli {

/// What the kernel calls a keeper.
inline constexpr std::string_view kKeeperName = "berth __keep";

/// A lease to be kept, and what to answer to the user.
struct Kept {
  leasing::HeldLease lease;
  Output answer;
  std::optional<pid_t> told = {};  ///< the process on whose terminal the end of the lease's time is told
  /// Tells whoever wants to know what becomes of the lease, without waiting; empty: nobody does.
  std::function<void(NoticeEvent event, const std::string& words)> tell_others = {};
  bool clears_variables = false;  ///< that process looks itself whether the lease is gone, also on SIGURG
};

/// Runs `take` in a process of its own, a keeper. When that has given its answer it stays behind and holds
/// the lease, without terminal, standard streams or anything else of the caller's: a shell that reads the
/// answer does not wait for it. The lease ends with `process`, or when the time that it says is over. Killing
/// the keeper ends it at once. Gives the status that the keeper answered with; all that it had to say has
/// been written. Error: `process` has ended. The probe goes to the keeper. REQUIRES: one thread.
Result<Output> leave_keeper(Environment& environment, std::optional<pid_t> process,
                            const std::function<Result<Kept>()>& take);

}  // namespace berth::cli
