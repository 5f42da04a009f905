#pragma once

#include <termios.h>

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/file.h"

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

/// The variables that a command on another host gets: "all", "none", or names separated by commas.
/// "all" leaves out the variables that belong to this machine or this login: paths of sockets and
/// displays, the home and the user, variables that a lease or a batch system has set, masks, and
/// those of Berth. `environment`: each "NAME=VALUE". Error: `usage` for a name that is not set, and
/// for more than 1 MiB in all.
Result<std::vector<std::string>> passed_environment(std::string_view which,
                                                    const std::vector<std::string>& environment);

}  // namespace berth::hosts
