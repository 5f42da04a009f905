#pragma once

#include <string>
#include <vector>

#include "berth/base/words.h"

// Programs that know no lease directory keep their own copies away from GPUs by locks of their own.
// Where the site says which, Berth heeds these locks, and takes them too, in the program's way.
namespace berth {

enum class OriginalLockKind {
  flock,
  fcntl,  ///< a record lock
  file,   ///< the file itself, while it is there: it may outlive its owner, so Berth never makes one
};
constexpr auto words_of(OriginalLockKind) {
  return std::to_array<std::string_view>({"flock", "fcntl", "file"});
}

enum class OriginalLockSpan {
  lease,       ///< from the grant to the end of the lease
  until_used,  ///< from a look at the granted GPUs until a process of the lease is on each of them
};

/// One way in which such a program locks GPUs: a row.
struct OriginalLock {
  /// As written: "~/…" is in the home of the asking user. One of {index}, {uuid}, {pci} and {cuda}
  /// (CUDA's number) stands for a GPU; where there is none, the file is for all GPUs at once.
  std::string path;
  OriginalLockKind kind = OriginalLockKind::flock;
  /// Whose files count beside those of root and of the asking user. "": nobody's.
  std::string user;
  bool of_anybody = false;  ///< files of all users count
  std::string program;      ///< its name, for people; "": the path says it
  OriginalLockSpan held = OriginalLockSpan::lease;
  /// The program makes the file if it is missing, and removes it after each use.
  bool comes_and_goes = false;

  bool operator==(const OriginalLock&) const = default;
};

/// A row for each folder of the original gpu_scheduler, and for each file of the original safe_gpu.
inline OriginalLock lock_of_gpu_scheduler(const std::string& folder) {
  return {folder + "/gpu_{cuda}.lock",
          OriginalLockKind::flock,
          "",
          true,
          "gpu_scheduler",
          OriginalLockSpan::lease,
          true};
}
inline OriginalLock lock_of_safe_gpu(const std::string& file) {
  return {file, OriginalLockKind::fcntl, "", true, "safe_gpu", OriginalLockSpan::until_used, false};
}

}  // namespace berth
