#pragma once

#include <cstddef>
#include <vector>

#include "berth/sys/file.h"

namespace berth::store {

/// Of the files of queue/ or leases/ those that may be alive, and at most `others` of the rest. In a small
/// directory that is all of them. In a crowded one, where somebody has left 100,000 dead tickets, the kernel
/// is asked once which files are locked, instead of each file in turn. REQUIRES: `entries` were listed before
/// the call: a ticket is locked before it has a name, so none that is alive is taken for dead.
std::vector<sys::DirectoryEntry> worth_reading(int directory, std::vector<sys::DirectoryEntry> entries,
                                               std::size_t others);

}  // namespace berth::store
