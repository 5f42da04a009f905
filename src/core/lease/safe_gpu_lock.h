#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "berth/lease/original_locks.h"

// The original safe_gpu knows no lease directory. Its copies keep a record lock on one file for all
// users, from the moment when they look at the GPUs until CUDA has started on those that they
// chose. Who does not hold that lock may choose a GPU that a copy has chosen and does not use yet.
//
// Our lock is of the kind that belongs to a descriptor and all its copies, and excludes record
// locks. So a process that outlives the grant can keep it (src/run/supervise/until_used.h). It is
// shared: leases keep our own starts apart, so none of these waits for another.
namespace berth::leasing {

/// How long it is held after the grant, if no process of the lease comes to be on each of its GPUs.
inline constexpr std::chrono::seconds kUntilUsedAtMost{30};

/// A process that keeps our lock away: it has the lock, or has waited for it for longer than we.
struct SafeGpuHolder {
  std::string file;
  pid_t pid = 0;  ///< 0: the kernel does not tell
  bool operator==(const SafeGpuHolder&) const = default;
};
/// "alice (python train.py, pid 4242) has the lock of safe_gpu, FILE".
std::string in_words(const SafeGpuHolder& holder);

class SafeGpuLock : public OriginalLockFiles {
 public:
  /// Locks all of these files, without waiting, or none: then it returns who has one of them. A
  /// file that is missing is made. One that cannot be locked at all is noted, and so is one of a
  /// process that has it for too long: of these in `kept`.
  std::optional<SafeGpuHolder> take(const std::vector<std::string>& files,
                                    const std::vector<SafeGpuHolder>& kept = {});
};

}  // namespace berth::leasing
