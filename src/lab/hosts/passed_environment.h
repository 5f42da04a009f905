#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth::hosts {

/// The variables that a command on another host gets: "all", "none", or names separated by commas.
/// "all" leaves out the variables that belong to this machine or this login: paths of sockets and
/// displays, the home and the user, variables that a lease or a batch system has set, masks, and
/// those of Berth. `environment`: each "NAME=VALUE". Error: `usage` for a name that is not set, and
/// for more than 1 MiB in all.
Result<std::vector<std::string>> passed_environment(std::string_view which,
                                                    const std::vector<std::string>& environment);

}  // namespace berth::hosts
