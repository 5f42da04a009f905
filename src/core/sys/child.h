#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/process_end.h"

namespace berth::sys {

/// "exit status 3", "signal 11 (Segmentation fault)".
std::string to_text(const ProcessEnd& ending);

/// Closes all descriptors but the standard ones.
void close_above_standard();

struct Command {
  std::string program;                   ///< a path if it has a slash; otherwise looked for on PATH
  std::vector<std::string> arguments{};  ///< without the program's own name
  int input = -1;                        ///< descriptor for its standard input; -1: /dev/null
  int output = -1;
  int error = -1;
  bool controls_terminal = false;  ///< its input is a terminal, which becomes that of its session
  /// "NAME=VALUE": its whole environment; nullopt: that of this process.
  std::optional<std::vector<std::string>> environment{};
};

/// A process that serves this one. It gets the three descriptors of its command and no others, no
/// blocked signal, and a session of its own, so that the terminal's Ctrl-C and Ctrl-Z are not for
/// it.
///
/// The parent may be a host program that does not know of us. If it waits for any child, it may
/// collect this one first; we then do not know how it ended.
class Child {
 public:
  /// Returns when the program has begun. Error: `failure` if it cannot be started.
  static Result<Child> spawn(const Command& command);
  /// The same by a fork of this process: the child calls `body`, and ends where that returns. It
  /// spares the start of a program. REQUIRES: this process has one thread, and no handler of a
  /// signal that the child must not have.
  static Result<Child> fork(const std::array<int, 3>& standard, const std::function<void()>& body);

  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept;
  /// Never blocks. A child that still runs is left alone, and collected by a later spawn or
  /// destruction.
  ~Child() { abandon(); }

  pid_t pid() const { return pid_; }
  /// How it ended; nullopt: it still runs after `patience`. Not to be called again after an answer.
  std::optional<ProcessEnd> wait(std::chrono::milliseconds patience);
  void kill(int signal) const;

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  void abandon();
  pid_t pid_ = -1;
};

}  // namespace berth::sys
