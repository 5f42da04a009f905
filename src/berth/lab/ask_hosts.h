#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/lab_host.h"
#include "berth/core/offer.h"
#include "berth/lab/ssh.h"
#include "berth/lab/wire.h"

namespace berth::lab {

/// How long a host may take until its envoy speaks. Longer than a slow login, and no ssh hangs for ever.
inline constexpr std::chrono::seconds kPatienceForHello{20};
/// Likewise until it has answered: the driver may be slow.
inline constexpr std::chrono::seconds kPatienceForAnswer{40};

/// Error: `failure`, where the Berth of the host is of another version than ours.
Result<void> check_hello(const EnvoyHello& hello);

/// Asks all hosts at once, and gives the answer of each, in their order: a MachineReport of a look, an Offer.
/// Error: why there is none, and what to do. `request`: what goes with the ask.
std::vector<Result<EnvoyMessage>> ask_hosts(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                            const EnvoyAsk& ask, const api::LeaseAsk& request);

/// How long has a host that has not spoken, or not answered.
Error why_silent(const LabHost& host, std::chrono::seconds patience, bool greeted);

}  // namespace berth::lab
