#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/cli/anywhere.h"
#include "berth/cli/command.h"
#include "berth/core/lab_host.h"

namespace berth::cli {

/// What waits or holds GPUs somewhere in the lab.
struct FarTicket {
  LabHost host;
  std::string id;
};

/// The one whose id ends in the word, on any of the hosts. Error: `usage`, where it could be several;
/// `failure`, where there is none, with the hosts that do not answer.
Result<FarTicket> find_far_ticket(const std::vector<LabHost>& hosts, std::string_view word);

/// Calls `berth WORDS` on this host, and gives what it says. Error: `failure`, with the host.
Result<Output> call_there(const LabHost& host, const std::vector<std::string>& words);

}  // namespace berth::cli
