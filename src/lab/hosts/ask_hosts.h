#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/hosts/model/offer.h"
#include "berth/hosts/ssh.h"
#include "berth/request/lab_host.h"

namespace berth::hosts {

/// Asks all hosts at once, and gives the answer of each, in the order of the hosts: a MachineReport
/// for a look, an Offer for an offer. Error: why there is no answer, and what to do. `request`:
/// goes with the question. REQUIRES: a question that changes something is asked without kept
/// connections: if one is lost, it is asked again.
std::vector<Result<EnvoyMessage>> ask_hosts(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                            const EnvoyAsk& ask, const leasing::LeaseAsk& request);

}  // namespace berth::hosts
