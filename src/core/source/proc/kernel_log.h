#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"
#include "berth/device/xid.h"

namespace berth::source {

/// The last part of the kernel's log, at once and without waiting. Of a simulated machine its file
/// `dev/kmsg` below BERTH_SIM_ROOT, in the same form. nullopt: this user may not read it.
std::optional<std::string> kernel_log();

/// The Xids of one look.
class Xids {
 public:
  /// Reads the log if the readings want it.
  explicit Xids(ReadingSet readings);
  /// With the addresses of devices, without which an Xid is nobody's: only if there is one.
  ReadingSet needed(ReadingSet readings) const;
  void note(Device& device) const;

 private:
  std::optional<std::vector<SeenXid>> seen_;
};

}  // namespace berth::source
