#pragma once

#include <vector>

#include "berth/base/error.h"
#include "berth/request/lab_host.h"

namespace berth::hosts {

/// The machines of this hub, by the names that it has for them. It includes machines that are down,
/// because ssh may reach them. Asks through berth-serve, which has an HTTP client, and waits some
/// seconds at most. Error: `failure`, with what the hub or the connection has said.
Result<std::vector<LabHost>> hosts_of_hub(const HubAccess& hub);

}  // namespace berth::hosts
