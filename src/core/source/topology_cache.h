#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"
#include "berth/sys/file.h"

namespace berth::source {

/// Small files of one user in a directory that others may write to as well.

/// A regular file of this user that nobody else can write. Any other is nobody's word: anybody can
/// give the lock file of a device, which is root's, a second name.
bool is_private(const struct stat& status);

/// Opens it for reading, and says what it is. Never blocks, and follows no link. Empty with ENOENT:
/// there is none. Empty with another error: what stands there is not private.
sys::Descriptor open_private_file(const std::string& path, struct stat& status);

/// Its text, if it is private and not longer than `most`.
std::optional<std::string> read_private_file(const std::string& path, std::size_t most);

/// Replaces the file's text in one step, or leaves the old text. True if it was replaced.
bool write_private_file(const std::string& path, std::string_view text);

/// The topology of this machine, as it was read once in this boot and with this driver. Each user
/// has a file of their own, so that nobody has to trust another user's file.
class TopologyCache {
 public:
  /// `directory`: everybody may write to it; "": keeps nothing.
  TopologyCache(std::string directory, std::string driver_version);

  /// nullopt: not known, or known for other devices.
  std::optional<Topology> find(const std::vector<std::string>& uuids) const;
  /// If it cannot be kept, that is no error: it is then read again.
  void keep(const Topology& topology) const;

 private:
  std::string path() const;

  std::string directory_;
  std::string driver_version_;
  std::string boot_id_;
};

}  // namespace berth::source
