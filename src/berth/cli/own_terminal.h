#pragma once

#include <termios.h>

#include <csignal>
#include <optional>

#include "berth/sys/descriptor.h"

namespace berth::cli {

/// The terminal of this process while a command on another host uses it: it passes every key as it is. The
/// destructor puts the terminal back as it was.
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

/// Reads the signals to this process that a command on another host is to get, and changes of the window's
/// size.
class SignalReader {
 public:
  /// From now on these signals have no other effect.
  SignalReader();
  int descriptor() const { return descriptor_.get(); }
  /// The next one. nullopt: there is none.
  std::optional<int> next() const;

 private:
  sys::Descriptor descriptor_;
};

}  // namespace berth::cli
