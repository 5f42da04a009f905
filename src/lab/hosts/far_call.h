#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/command/command.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/request/lab_host.h"

namespace berth::hosts {

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

}  // namespace berth::hosts
