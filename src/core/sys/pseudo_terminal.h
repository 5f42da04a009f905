#pragma once

#include <string_view>

#include "berth/base/error.h"
#include "berth/sys/descriptor.h"

namespace berth::sys {

/// Two sides of a terminal that no screen belongs to. What is written to one is read from the
/// other. Both are close-on-exec.
struct PseudoTerminal {
  Descriptor ours;    ///< of the program that plays the screen and the keyboard
  Descriptor theirs;  ///< the terminal, as a command sees it
};

/// `user`: who gets it, for the error: "ssh". Error: `failure`.
Result<PseudoTerminal> make_pseudo_terminal(std::string_view user);

}  // namespace berth::sys
