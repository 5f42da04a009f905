#pragma once

#include <string>

#include "berth/sys/descriptor.h"

namespace berth::sys {

/// A datagram socket by which any process that knows its name can wake its owner. The kernel
/// removes it with the owner's process. Its name is one of this network namespace. Anybody may
/// ring, so a ring is only a hint.
class Bell {
 public:
  /// If the name is taken, or if there is no socket, it never rings.
  explicit Bell(const std::string& name);

  int descriptor() const { return socket_.get(); }

  /// Whether somebody has rung since the last call. Of very many rings the next call tells as well.
  bool has_rung() const;

 private:
  Descriptor socket_;
};

/// As long as this object lives, a ring also sends SIGIO to this process. Afterwards no SIGIO is
/// left pending. REQUIRES: the bell outlives this object, and SIGIO is blocked meanwhile.
class BellSignal {
 public:
  explicit BellSignal(const Bell& bell);
  ~BellSignal();
  BellSignal(const BellSignal&) = delete;
  BellSignal& operator=(const BellSignal&) = delete;

 private:
  int descriptor_;
};

/// Rings, if there is such a bell. Never blocks.
void ring(const std::string& name);

}  // namespace berth::sys
