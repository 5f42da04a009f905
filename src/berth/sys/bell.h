#pragma once

#include <string>

#include "berth/sys/descriptor.h"

namespace berth::sys {

/// A place to be woken at, for anybody who knows its name: a datagram socket that the kernel takes away with
/// its process. Names are those of this network namespace. Anybody may ring, so it is a hint and nothing
/// more.
class Bell {
 public:
  /// Where the name is taken or there is no socket to be had, it never rings.
  explicit Bell(const std::string& name);

  int descriptor() const { return socket_.get(); }

  /// Whether somebody has rung since this was asked last.
  bool has_rung() const;

 private:
  Descriptor socket_;
};

/// As long as it lives, a ring also sends SIGIO to this process. None is left pending after it. REQUIRES: the
/// bell outlives it, and SIGIO is blocked meanwhile.
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
