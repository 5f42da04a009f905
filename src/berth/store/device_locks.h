#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/error.h"
#include "berth/store/fault.h"
#include "berth/store/lease_store.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// Name of the file that stands for a device: its UUID, without what a file name cannot have.
std::string device_file_name(std::string_view uuid);

/// Ends the lock of a device and what was promised on it, for all who share the descriptor.
void unlock_device(int file);

/// The device files that one ticket has locked. A lock lasts until no process has the descriptor any more.
class DeviceLocks {
 public:
  /// REQUIRES: the directory's descriptor outlives this.
  explicit DeviceLocks(int devices) : devices_(devices) {}

  /// Takes all of them or none. The UUID of one that somebody else has, or on which so much memory cannot be
  /// promised any more; nullopt when all are taken. Makes device files that are missing.
  Step<std::optional<std::string>> take(const std::vector<DeviceLock>& locks);

  /// Ends the locks and promises, for all who share them.
  void unlock();
  /// Ends only our copies of the descriptors.
  void close() { files_.clear(); }

  std::vector<int> descriptors() const;

 private:
  struct Held {
    sys::Descriptor file;
    bool locked = false;
  };
  Step<bool> take_one(const DeviceLock& lock);
  Step<bool> take_promise(const DeviceLock& lock);
  Step<sys::Descriptor> open_device(const std::string& name) const;

  int devices_;
  /// Also those that were tried and not taken: closing one is an event for all who watch it, this ticket's
  /// owner too, and an unsuccessful try at each event would be a loop.
  std::map<std::string, Held> files_;
};

}  // namespace berth::store
