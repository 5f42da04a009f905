#pragma once

#include <termios.h>

#include "berth/sys/descriptor.h"

namespace berth::hosts {

/// A process of its own, `berth __terminal`, that puts the terminal on standard input back as it
/// was if this process is killed. It does nothing about a terminal that has other modes than we
/// gave it: a shell has put it back then.
class TerminalKeeper {
 public:
  /// From now on `before` is to be put back while the terminal has the modes `ours`. Where the
  /// process cannot be started, nobody does it.
  void keep(const termios& before, const termios& ours);
  /// The terminal is as it was.
  void let_go();

 private:
  sys::Descriptor told_;  ///< its end is the end of this process
};

}  // namespace berth::hosts
