#pragma once

#include <expected>
#include <optional>
#include <string>

#include "berth/command/environment.h"
#include "berth/job/run_end.h"
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

/// Runs a command in the lease of this process, until the command has ended and the lease is given
/// back, or is left to processes that the command has left behind.
std::expected<RunEnd, sys::NotStarted> run_in_lease(const CommandSetting& setting,
                                                    const sys::JobCommand& command, leasing::HeldLease& lease,
                                                    const sys::HeldTermination& held);

}  // namespace berth::supervise
