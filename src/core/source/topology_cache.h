#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"

namespace berth::source {

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
