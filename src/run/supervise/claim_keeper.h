#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "berth/command/command.h"
#include "berth/job/job.h"
#include "berth/lease/session.h"
#include "berth/receipts/make_receipt.h"
#include "berth/supervise/compliance_check.h"

namespace berth::supervise {

/// The name of a keeper's process.
inline constexpr std::string_view kKeeperName = "berth __keep";

/// A lease to be kept, and what to answer to the user.
struct KeptLease {
  leasing::HeldLease lease;
  command::Output answer;
  std::optional<pid_t> told = {};  ///< the process on whose terminal to say that the time is over
  /// Sends notices about the lease, without waiting for them; empty: nobody wants any.
  std::function<void(NoticeEvent event, const std::string& words)> tell_others = {};
  /// Samples of the lease, which then leaves a receipt; null: it leaves none.
  std::unique_ptr<receipts::RunSampling> sampling = {};
  std::optional<MaskWatch> mask = {};  ///< of the job's mask; goes by `sampling`
  bool clears_variables = false;  ///< that process looks itself whether the lease has ended, also on SIGURG
};

/// Runs `take` in a process of its own, a keeper. After its answer the keeper stays and holds the
/// lease. It keeps no terminal, standard stream or anything else of the caller's, so a shell that
/// reads the answer does not wait for the keeper. The lease ends with `process`, or when its time
/// limit is over; if the keeper is killed, it ends at once. Gives the exit status of the keeper's
/// answer; the text of the answer has been written by then. Error: `process` has ended. The probe
/// goes to the keeper. REQUIRES: one thread.
Result<command::Output> leave_keeper(command::Environment& environment, std::optional<pid_t> process,
                                     const std::function<Result<KeptLease>()>& take);

}  // namespace berth::supervise
