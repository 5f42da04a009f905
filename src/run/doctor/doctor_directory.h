#pragma once

#include <string>
#include <vector>

#include "berth/store/lease_directory.h"
#include "berth/view/doctor.h"

namespace berth::leasing {

using view::Finding;

/// Whether the lease directory is as it should be: it can be used, nobody can remove others'
/// tickets, it is not full, every file in it is understood, and all users of this machine use the
/// same directory. `uuids`: of the devices of this machine, as far as they are known. Changes
/// nothing.
std::vector<Finding> examine_lease_directory(const store::DirectoryChoice& choice,
                                             const std::vector<std::string>& uuids);

/// Those of these findings that keep a process from seeing everybody's leases there.
std::vector<Finding> examine_view(const store::DirectoryChoice& choice);

}  // namespace berth::leasing
