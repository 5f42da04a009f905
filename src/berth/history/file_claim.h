#pragma once

#include <cstdint>
#include <string>

#include "berth/history/database.h"

namespace berth::history {

/// The file of the history, before SQLite opens it.
struct Claim {
  std::string path;  ///< without links
  std::uint64_t inode = 0;
};

/// Makes the file, for its owner alone, when it is not there. DatabaseError: its folder is not there or
/// others may put files into it; it is a link, no file, or another user's.
Done<Claim> claim_file(const std::string& path);

/// The file that this name stands for now, 0 for none.
std::uint64_t inode_of(const std::string& path);

/// Gives the file and its log another name: PATH.corrupt-2026-03-01, and the next of that day -2 behind it.
/// Gives the name. DatabaseError: also when there are five of the day, none of which goes.
Done<std::string> rename_corrupt(const std::string& path, std::int64_t now_s);

}  // namespace berth::history
