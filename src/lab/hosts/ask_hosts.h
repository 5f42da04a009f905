#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/hosts/model/host_offer.h"
#include "berth/hosts/ssh.h"
#include "berth/request/request.h"

namespace berth::hosts {

/// Asks all hosts at once, and gives the answer of each, in the order of the hosts: a MachineReport
/// for a look, an Offer for an offer. Error: why there is no answer, and what to do. `request`:
/// goes with the question. REQUIRES: a question that changes something is asked without kept
/// connections: if one is lost, it is asked again.
std::vector<Result<EnvoyMessage>> ask_hosts(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                            const EnvoyAsk& ask, const api::LeaseAsk& request);

/// Calls `berth WORDS` on all these hosts at once, in the order of the hosts: the text that each
/// prints. Error: why a host has not answered, or, if the call failed, what it printed. REQUIRES:
/// words that only look.
std::vector<Result<std::string>> documents_of(const std::vector<LabHost>& hosts,
                                              const std::vector<std::string>& words);

/// Replaces this process by ssh, which calls `berth WORDS` on this host, with our own streams.
/// Returns only if that fails, with the reason. REQUIRES: words that a shell does not change.
Error become_call_there(const LabHost& host, std::string_view words);

/// Calls `berth WORDS` on this host, and gives what it prints. It is called once at most.
/// Error: `failure`, with the host.
Result<command::Output> call_there(const LabHost& host, const std::vector<std::string>& words);

/// A request or a lease on some host of the lab.
struct FarTicket {
  LabHost host;
  std::string id;
};

/// The ticket whose id ends in the word, on any of the hosts. Error: `usage` if several fit;
/// `failure` if none fits, with the hosts that do not answer.
Result<FarTicket> find_far_ticket(const std::vector<LabHost>& hosts, std::string_view word);

}  // namespace berth::hosts
