#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/core/usage.h"

namespace berth::serve {

/// What several machines, by name, told of the same question as one: a user's hours are added up, a device
/// has its machine's name. `missing`: machines that told nothing. Pure.
Usage total_usage(UsageBy by, const std::vector<std::pair<std::string, Usage>>& told,
                  std::vector<std::string> missing);

}  // namespace berth::serve
