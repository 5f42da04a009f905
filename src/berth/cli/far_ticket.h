#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/cli/anywhere.h"
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

}  // namespace berth::cli
