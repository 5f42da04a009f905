#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/model/offer.h"
#include "berth/hosts/ssh.h"
#include "berth/hosts/wire.h"
#include "berth/request/lab_host.h"

namespace berth::hosts {

/// How long a host may take until its envoy speaks: longer than a slow login takes, and no ssh hangs for
/// ever.
inline constexpr std::chrono::seconds kPatienceForHello{20};
/// How long a host may take until it has answered: the driver may be slow.
inline constexpr std::chrono::seconds kPatienceForAnswer{40};

/// Error: `failure` if the Berth of the host is of another version than ours.
Result<void> check_hello(const EnvoyHello& hello);

/// Asks all hosts at once, and gives the answer of each, in the order of the hosts: a MachineReport for a
/// look, an Offer for an offer. Error: why there is no answer, and what to do. `request`: goes with the
/// question. REQUIRES: a question that changes something is asked without kept connections: if one is lost,
/// it is asked again.
std::vector<Result<EnvoyMessage>> ask_hosts(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                            const EnvoyAsk& ask, const leasing::LeaseAsk& request);

/// How long to wait for a host that has not spoken, or not answered.
Error why_silent(const LabHost& host, std::chrono::seconds patience, bool greeted);

}  // namespace berth::hosts
