#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "berth/verdict/site_policy.h"

// Programs that know no lease directory keep their own copies away from GPUs by locks of their own. Where the
// site says that such a program is still in use, Berth takes its locks too, in the program's way.
namespace berth {

enum class OriginalLockKind {
  file_for_each_gpu,  ///< a folder; a GPU is locked by a flock on its file in there
  file_for_all,       ///< one file; a record lock on it keeps all copies from choosing a GPU
};

enum class OriginalLockSpan {
  lease,       ///< from the grant to the end of the lease
  until_used,  ///< from a look at the granted GPUs until a process of the lease is on each of them
};

/// One such program: a row.
struct OriginalLock {
  std::string_view program;
  std::string_view key;  ///< in the site file
  std::vector<std::string> SitePolicy::* paths;
  OriginalLockKind kind;
  OriginalLockSpan held;
};

inline constexpr auto kOriginalLocks = std::to_array<OriginalLock>({
    {"gpu_scheduler", "gpu_scheduler_locks", &SitePolicy::gpu_scheduler_locks,
     OriginalLockKind::file_for_each_gpu, OriginalLockSpan::lease},
    {"safe_gpu", "safe_gpu_locks", &SitePolicy::safe_gpu_locks, OriginalLockKind::file_for_all,
     OriginalLockSpan::until_used},
});

}  // namespace berth
