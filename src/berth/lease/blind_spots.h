#pragma once

#include <string>
#include <vector>

#include "berth/store/lease_directory.h"

namespace berth::leasing {

/// What of this machine a process here cannot see, as one who shows it to others must say: leases that others
/// make elsewhere, and the processes of other users. A sentence each, with what to do. Changes nothing.
std::vector<std::string> blind_spots(const store::DirectoryChoice& choice);

}  // namespace berth::leasing
