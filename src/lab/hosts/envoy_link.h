#pragma once

#include <termios.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/sys/file.h"

namespace berth::hosts {

/// The envoy's side of the ssh that started it: its standard input and output, which may be a
/// terminal. Once the command is to begin, they become the command's.
class EnvoyLink {
 public:
  /// From here on a terminal passes every byte as it is, and the error stream there is silent. To
  /// be called once, before the rest. Not by a constructor: this process may have to start itself
  /// again before it speaks, and would then take these modes for the user's.
  void begin();

  /// Writes the whole record. Error: the caller has gone, or reads nothing for half a minute.
  Result<void> say(std::string_view record) const;
  /// The same for news that the caller can do without: it is dropped if it cannot be written at
  /// once.
  void mention_record(std::string_view record) const;
  /// The next whole record. nullopt: the caller has gone. Error: `timed_out`, after `patience`.
  Result<std::optional<std::string>> hear(std::optional<std::chrono::milliseconds> patience);

  /// Until `stop_watching`, this process ends when the caller goes, or when its request is
  /// cancelled, whatever it sleeps in. The kernel then ends its ticket. If the request was
  /// cancelled, the caller is told so.
  Result<void> end_with_caller() const;
  void stop_watching() const;

  /// Says `begun`. From here on the streams are the command's, and so is what is typed once the
  /// caller has heard that. A thread passes on the input and the signals that the caller sends. If
  /// the caller is lost, the thread ends the command and all that it has started.
  Result<void> give_to_command(std::string_view begun);

  /// Writes the last record into the stream in which the caller looks for it.
  void say_last(std::string_view record) const;

 private:
  termios modes_{};  ///< the terminal's, as the command finds them
  bool terminal_ = false;
  sys::Descriptor own_errors_;  ///< with a terminal: the error stream, while it is silent
  std::string heard_;
};

}  // namespace berth::hosts
