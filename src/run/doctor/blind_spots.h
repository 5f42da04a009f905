#pragma once

#include <string>
#include <vector>

#include "berth/store/lease_directory.h"

namespace berth::leasing {

/// What a process here cannot see of this machine: leases that others make elsewhere, and the
/// processes of other users. A program that shows the machine to others must say so. One sentence
/// each, with what to do. Changes nothing.
std::vector<std::string> blind_spots(const store::DirectoryChoice& choice);

}  // namespace berth::leasing
