#pragma once

#include <termios.h>

#include <csignal>
#include <optional>

#include "berth/hosts/terminal_keeper.h"
#include "berth/sys/descriptor.h"

namespace berth::hosts {

/// The standard input of this process, while a command on another host uses it. If it is a
/// terminal, it is ours only while this process is in its foreground: in the background it is the
/// shell's, and nothing is read from it or changed about it. The destructor puts the terminal back
/// as it was.
class OwnTerminal {
 public:
  /// `passes_keys`: the command has a terminal as well, and while this one is ours, it passes every
  /// key as it is.
  explicit OwnTerminal(bool passes_keys);
  OwnTerminal(const OwnTerminal&) = delete;
  OwnTerminal& operator=(const OwnTerminal&) = delete;
  ~OwnTerminal() { give_back(); }

  /// Whether what comes there is for us now. A terminal that has become ours passes every key from
  /// here on.
  bool take_if_ours();
  /// Another process may have had the terminal: this one was stopped.
  void has_been_away() { passes_ = false; }
  void give_back();
  /// In the background, where the user wants no output from there (stty tostop).
  bool holds_back_output() const;

 private:
  bool is_ours() const;
  void pass_every_key();

  bool passes_keys_;
  bool is_terminal_;
  bool was_of_session_;  ///< it was this process's controlling terminal
  bool passes_ = false;  ///< it has `passing_`, as far as we know
  std::optional<termios> before_;
  termios passing_{};
  TerminalKeeper keeper_;
};

/// Reads the signals to this process that a command on another host is to get, and changes of the
/// window's size. A signal that was ignored before stays ignored.
class SignalReader {
 public:
  struct Signal {
    int number = 0;
    bool is_of_terminal = false;  ///< a key has sent it
  };

  /// From now on these signals have no other effect, and nothing that this process does with a
  /// terminal stops it. `terminal`: the command has a terminal, so SIGTSTP and SIGCONT are read as
  /// well.
  explicit SignalReader(bool terminal);
  int descriptor() const { return descriptor_.get(); }
  /// The next one. nullopt: there is none.
  std::optional<Signal> next() const;

 private:
  sys::Descriptor descriptor_;
};

}  // namespace berth::hosts
