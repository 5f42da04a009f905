#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/store/fault.h"
#include "berth/store/lease_store.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// The name of the file that stands for a device: its UUID, without characters that a file name
/// cannot have.
std::string device_file_name(std::string_view uuid);
/// Whether a device could have a file of this name. A file of any other name may be anybody's, and
/// its name goes nowhere.
bool is_device_file_name(std::string_view name);

/// Ends the lock of a device and its promises, for all processes that share the descriptor.
void unlock_device(int file);

/// The device files that one ticket has locked. A lock lasts until no process has the descriptor
/// any more.
class DeviceLocks {
 public:
  /// REQUIRES: the directory's descriptor outlives this object.
  explicit DeviceLocks(int devices) : devices_(devices) {}

  /// Takes all locks or none. Gives the UUID of a device that somebody else has locked, or on which
  /// so much memory can no longer be promised; nullopt: all locks are taken. Makes device files
  /// that are missing.
  FaultOr<std::optional<std::string>> take(const std::vector<DeviceLock>& locks);

  /// Ends the locks and promises, for all processes that share them.
  void unlock();
  /// Ends only our copies of the descriptors.
  void close() { files_.clear(); }

  std::vector<int> descriptors() const;

 private:
  struct Held {
    sys::Descriptor file;
    bool locked = false;
  };
  FaultOr<bool> take_one(const DeviceLock& lock);
  FaultOr<bool> take_promise(const DeviceLock& lock);
  FaultOr<sys::Descriptor> open_device(const std::string& name) const;

  int devices_;
  /// Has also the files whose lock could not be taken. Closing a file is an event for all processes
  /// that watch it, including this ticket's owner, so opening and closing it at each event would be
  /// an endless loop.
  std::map<std::string, Held> files_;
};

}  // namespace berth::store
