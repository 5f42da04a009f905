#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/core/snapshot.h"

namespace berth::source {

/// The topology of this machine as it was read once since it booted, with this driver. One file a user, so
/// that nobody has to believe another's.
class TopologyCache {
 public:
  /// `directory` may be one that everybody writes to; "" keeps nothing.
  TopologyCache(std::string directory, std::string driver_version);

  /// nullopt: not known, or for other devices.
  std::optional<Topology> find(const std::vector<std::string>& uuids) const;
  /// Failing to keep it is no error: it is read again.
  void keep(const Topology& topology) const;

 private:
  std::string path() const;

  std::string directory_;
  std::string driver_version_;
  std::string boot_id_;
};

}  // namespace berth::source
