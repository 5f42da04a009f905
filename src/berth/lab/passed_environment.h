#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"

namespace berth::lab {

/// Which variables a command on another host gets: "all", "none", or names with commas between. "all" leaves
/// out what is this machine's or this login's own: paths of sockets and displays, the home and the user, what
/// a lease or a batch system has set, masks, and Berth's own. `environment`: each "NAME=VALUE". Error:
/// `usage`, for a name that is not set, and for more than 1 MiB in all.
Result<std::vector<std::string>> passed_environment(std::string_view which,
                                                    const std::vector<std::string>& environment);

}  // namespace berth::lab
