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

/// Makes the file, for its owner alone, if it is missing. DatabaseError: its folder is missing, or
/// others may put files into the folder; or it is a link, no regular file, or another user's.
Done<Claim> claim_file(const std::string& path);

/// The inode of the file that has this name now; 0: there is none.
std::uint64_t inode_of(const std::string& path);

/// Renames the file and its log to PATH.corrupt-2026-03-01; a second one of that day gets -2 at the
/// end. Gives the new name. DatabaseError: also if there are five of that day already; none of
/// these is removed.
Done<std::string> rename_corrupt(const std::string& path, std::int64_t now_s);

}  // namespace berth::history
