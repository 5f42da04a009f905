#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/hosts/lab_hosts.h"
#include "berth/request/lab_host.h"

namespace berth::hosts {

/// A request or a lease on some host of the lab.
struct FarTicket {
  LabHost host;
  std::string id;
};

/// The ticket whose id ends in the word, on any of the hosts. Error: `usage` if several fit;
/// `failure` if none fits, with the hosts that do not answer.
Result<FarTicket> find_far_ticket(const std::vector<LabHost>& hosts, std::string_view word);

}  // namespace berth::hosts
