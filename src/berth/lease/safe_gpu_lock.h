#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "berth/lease/original_locks.h"

// The original safe_gpu knows no lease directory. Its copies keep a record lock on one file for all
// users, from the moment when they look at the GPUs until CUDA has started on those that they
// chose. Who does not hold that lock may choose a GPU that a copy has chosen and does not use yet.
//
// Our lock is of the kind that belongs to a descriptor and all its copies, and excludes record
// locks. So a process that outlives the grant can keep it (src/berth/supervise/until_used.h).
namespace berth::leasing {

/// How long it is held after the grant, if no process of the lease comes to be on each of its GPUs.
inline constexpr std::chrono::seconds kUntilUsedAtMost{30};

class SafeGpuLock : public OriginalLockFiles {
 public:
  /// Locks those of these files that are there. Waits while others have them, `limit` at most for
  /// all.
  void take(const std::vector<std::string>& files, std::chrono::milliseconds limit);
};

}  // namespace berth::leasing
