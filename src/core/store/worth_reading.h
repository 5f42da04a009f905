#pragma once

#include <cstddef>
#include <vector>

#include "berth/sys/file.h"

namespace berth::store {

/// The files of queue/ or leases/ that may be alive, and at most `others` of the rest. In a small
/// directory these are all files. In a crowded one, for example with 100,000 dead tickets, this
/// asks the kernel once which files are locked, instead of asking each file. REQUIRES: `entries`
/// were listed before the call. A ticket is locked before it has a name, so a live one is locked
/// (docs/lease-protocol.md, *Dead tickets*).
std::vector<sys::DirectoryEntry> worth_reading(int directory, std::vector<sys::DirectoryEntry> entries,
                                               std::size_t others);

/// The same in a directory of any size, for who has met many dead tickets in it.
std::vector<sys::DirectoryEntry> likely_alive(int directory, std::vector<sys::DirectoryEntry> entries,
                                              std::size_t others);

}  // namespace berth::store
