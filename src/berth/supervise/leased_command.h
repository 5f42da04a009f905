#pragma once

#include <expected>
#include <optional>
#include <string>

#include "berth/command/environment.h"
#include "berth/lease/acquire.h"
#include "berth/lease/session.h"
#include "berth/receipts/sampler_client.h"
#include "berth/supervise/run.h"
#include "berth/sys/job_process.h"

namespace berth::supervise {

/// What a command in a lease needs of the run around it.
struct CommandSetting {
  command::Environment& environment;
  const leasing::Session& session;
  const RunOptions& options;
  std::optional<receipts::SamplingTimes> sampling;
  std::string lease_name;  ///< short
};

struct CommandOutcome {
  int status = 0;             ///< to end with
  bool starts_again = false;  ///< it has given way, and its user wants that
};

/// Runs a command in the lease of this process, until the command has ended and the lease is given
/// back, or is left to processes that the command has left behind. If a signal killed the command
/// and it does not start again, this does not return, but kills this process by the same signal.
std::expected<CommandOutcome, sys::NotStarted> run_in_lease(const CommandSetting& setting,
                                                            const sys::JobCommand& command,
                                                            leasing::HeldLease& lease,
                                                            const sys::HeldTermination& held);

}  // namespace berth::supervise
