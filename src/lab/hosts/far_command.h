#pragma once

#include <functional>
#include <optional>
#include <string>

#include "berth/base/error.h"
#include "berth/hosts/channel.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/hosts/lab_queue_entry.h"
#include "berth/hosts/own_terminal.h"
#include "berth/sys/job_process.h"

namespace berth::hosts {

/// A text that nobody can guess, for EnvoyAsk::token. Error: the kernel gives none.
Result<std::string> secret_mark();

/// A command that has begun on another host, with our streams, signals and window.
class FarCommand {
 public:
  /// `look`: called again and again while the command runs; returns the latest moment for its next
  /// call. May be null. `entry`: of the request in the lab queue, to be kept; null: it has none.
  FarCommand(Channel& channel, SignalReader& signals, std::string_view token, bool terminal,
             std::function<std::chrono::steady_clock::time_point()> look, LabQueueEntry* entry)
      : channel_(channel),
        signals_(signals),
        terminal_(terminal),
        finder_(token),
        look_(std::move(look)),
        entry_(entry),
        own_terminal_(terminal) {}

  /// Serves the command until it has ended. Does not return if this process is told to end and
  /// cannot pass that on. Error: the connection is lost.
  Result<ProcessEnd> serve();

 private:
  /// What waits to be written to a stream of ours.
  struct Sink {
    int descriptor;
    std::string waiting{};
    bool closed = false;  ///< nobody reads there any more

    void write_some();
    void write_rest();
  };

  void wait();
  bool has_input();
  void fit_window() const;
  void read_input();
  void take_output();
  void pass_signals();
  void pass_on(const SignalReader::Signal& signal);
  bool has_all_come() const;
  [[noreturn]] void end_by(int signal);

  Channel& channel_;
  SignalReader& signals_;
  bool terminal_;
  EndFinder finder_;
  std::function<std::chrono::steady_clock::time_point()> look_;
  LabQueueEntry* entry_;  ///< null: none, or the agent does not know those who run
  OwnTerminal own_terminal_;
  Sink out_{1}, err_{2};
  bool has_input_ = false;  ///< what comes on standard input is for us
  bool input_has_ended_ = false;
  bool signal_waits_ = false;  ///< a signal was sent, and may not have left yet
  std::chrono::steady_clock::time_point heard_at_ = std::chrono::steady_clock::now();
};

}  // namespace berth::hosts
