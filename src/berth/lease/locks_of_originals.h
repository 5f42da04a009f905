#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"
#include "berth/sys/descriptor.h"

// The original gpu_scheduler knows no lease directory. Its copies exclude each other by an exclusive flock on
// one file for each GPU, `gpu_N.lock`, where N is CUDA's number of the GPU. A copy removes the file after it
// has unlocked it, so a lock counts only while the name still leads to the locked file. A GPU that is locked
// may be idle, and then nothing but the lock shows that it is taken.
//
// Our locks are shared locks. So a copy of the original cannot lock the file, but several leases of one GPU
// can.
namespace berth::leasing {

/// Folders or files as the site file names them, with the home of this user in place of "~".
std::vector<std::string> lock_folders(const std::vector<std::string>& as_written);

/// The UUIDs of the GPUs that a copy of the original has locked in one of these folders. Not those that only
/// we have locked.
std::vector<std::string> locked_by_originals(const std::vector<std::string>& folders,
                                             const Snapshot& snapshot);

/// Our locks in these folders.
class SchedulerLocks {
 public:
  /// Locks the files of all these devices, or of none; then it returns the UUID of a device that a copy of
  /// the original has locked. It takes some milliseconds, in which a copy that has just unlocked a file may
  /// remove it.
  std::optional<std::string> take(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& uuids, const Snapshot& snapshot);
  /// What could not be locked, and why, one sentence each. There the original is not kept away.
  const std::vector<std::string>& notes() const { return notes_; }

  std::vector<int> descriptors() const;
  /// Ends the locks for all processes that share them.
  void release();

 private:
  std::vector<sys::Descriptor> files_;
  std::vector<std::string> notes_;
};

}  // namespace berth::leasing
