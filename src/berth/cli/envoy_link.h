#pragma once

#include <termios.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "berth/core/error.h"
#include "berth/sys/descriptor.h"

namespace berth::cli {

/// The envoy's side of the ssh that started it: its standard input and output, which may be a terminal. Once
/// the command is to begin, they become the command's.
class EnvoyLink {
 public:
  /// A terminal passes everything as it is from here on, and the error stream is silent there.
  EnvoyLink();

  bool is_terminal() const { return terminal_; }

  /// All of it. Error: nobody listens, or nobody reads for half a minute.
  Result<void> say(std::string_view record) const;
  /// The same where it is news that nobody needs: dropped if it cannot be taken at once.
  void mention_record(std::string_view record) const;
  /// The next whole record. nullopt: the caller has gone. Error: `timed_out`, after `patience`.
  Result<std::optional<std::string>> hear(std::optional<std::chrono::milliseconds> patience);

  /// Until `stop_watching`, the leaving of the caller ends this process, whatever it sleeps in: the kernel
  /// ends its ticket with it.
  Result<void> end_with_caller() const;
  void stop_watching() const;

  /// The streams are the command's from here on. A thread passes on what the caller sends: input and signals.
  /// If the caller is lost, it ends the command and all that this has started.
  Result<void> give_to_command();

  /// The last word, in the stream that the caller looks at for it.
  void say_last(std::string_view record) const;

 private:
  termios modes_{};  ///< the terminal's, as the command finds them
  bool terminal_;
  sys::Descriptor own_errors_;  ///< terminal: the error stream, while that is silent
  std::string heard_;
};

}  // namespace berth::cli
