#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/core/snapshot.h"
#include "berth/sys/descriptor.h"

// The original gpu_scheduler knows no lease directory: its copies exclude each other by an exclusive flock on
// a file a GPU, `gpu_N.lock`, where N is CUDA's number of the GPU. It removes the file after it has let go of
// it, so a lock counts only while the name still leads to the file that was locked. A GPU may be idle while
// it has one, and then nothing else tells of it.
//
// Ours are shared: an original cannot have its own beside them, and those of several leases of a GPU go
// together.
namespace berth::leasing {

/// Folders as the site file names them, with this user's home for "~".
std::vector<std::string> scheduler_lock_folders(const std::vector<std::string>& as_written);

/// The UUIDs of the GPUs that an original has locked in one of these folders. Never those that only we have.
std::vector<std::string> locked_by_originals(const std::vector<std::string>& folders,
                                             const Snapshot& snapshot);

/// Locks of ours in these folders.
class SchedulerLocks {
 public:
  /// Takes those of all these devices, or none: then the UUID of one that an original has. Takes some
  /// milliseconds, in which an original that has just let go of a file may remove it.
  std::optional<std::string> take(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& uuids, const Snapshot& snapshot);
  /// What could not be locked, and why, one sentence each: no original is kept away by it.
  const std::vector<std::string>& notes() const { return notes_; }

  std::vector<int> descriptors() const;
  /// Ends them for all who share them.
  void release();

 private:
  std::vector<sys::Descriptor> files_;
  std::vector<std::string> notes_;
};

}  // namespace berth::leasing
