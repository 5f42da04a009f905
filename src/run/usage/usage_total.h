#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/usage/usage.h"

namespace berth {

/// Whether a user's name means the same user on all machines, or another one on each.
enum class UsersAre { of_all_hosts, of_hosts };

/// The answers of several machines, by name, to the same question, as one answer. A user's hours
/// are added up, or told for each machine; a device has its machine's name. `missing`: machines
/// that did not answer. Pure.
Usage total_usage(UsageBy by, const std::vector<std::pair<std::string, Usage>>& told,
                  std::vector<std::string> missing, UsersAre users = UsersAre::of_all_hosts);

}  // namespace berth
