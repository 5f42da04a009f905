#pragma once

#include <termios.h>

#include <csignal>
#include <optional>

#include "berth/sys/descriptor.h"

namespace berth::cli {

/// The terminal of this process while a command far away has it: it passes every key as it is. Gives it back
/// at its end.
class OwnTerminal {
 public:
  OwnTerminal() = default;
  OwnTerminal(const OwnTerminal&) = delete;
  OwnTerminal& operator=(const OwnTerminal&) = delete;
  ~OwnTerminal() { give_back(); }

  void pass_everything();
  void give_back();

 private:
  std::optional<termios> before_;
};

/// Signals to this process as something to be read: those that a command far away is to get, and of a change
/// of the window.
class SignalReader {
 public:
  /// From now on they do nothing else.
  SignalReader();
  int descriptor() const { return descriptor_.get(); }
  /// The next one. nullopt: there is none.
  std::optional<int> next() const;

 private:
  sys::Descriptor descriptor_;
};

}  // namespace berth::cli
