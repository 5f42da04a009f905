#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/core/usage.h"

namespace berth::serve {

/// Whether a user is one on all machines, or another on each.
enum class UsersAre { of_all_hosts, of_hosts };

/// What several machines, by name, told of the same question as one: a user's hours are added up, or are
/// told of each machine; a device has its machine's name. `missing`: machines that told nothing. Pure.
Usage total_usage(UsageBy by, const std::vector<std::pair<std::string, Usage>>& told,
                  std::vector<std::string> missing, UsersAre users = UsersAre::of_all_hosts);

}  // namespace berth::serve
