#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "berth/job/end_signals.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/wake_timer.h"

namespace berth::supervise {

/// The signals by which this process ends its job, as job/end_signals.h says, and the timer that
/// wakes it for them.
class TerminationSignals {
 public:
  /// Gives all living processes of the job.
  using Processes = std::function<std::vector<UniqueProcess>()>;

  /// A moment of the boot clock at which something is due, although this process may be stopped
  /// then. nullopt: none. To be called before the job starts, too: this process may be stopped
  /// right after the start.
  void wake_at(const std::optional<std::chrono::milliseconds>& due, std::chrono::milliseconds now);

  /// The command has started. A shell gets SIGHUP as well, as from a terminal that closes, because
  /// interactive shells ignore SIGTERM.
  void command_is(pid_t command, bool is_shell);

  /// From now on its pid may be that of another process.
  void command_has_ended() { command_.reset(); }

  void send(EndAction what, const Processes& job);
  /// If the command is a shell that runs.
  void hang_up_shell() const;

 private:
  void ask_command(const std::vector<UniqueProcess>& job);
  void ask(const std::vector<UniqueProcess>& job);

  std::optional<pid_t> command_;
  bool is_shell_ = false;
  std::set<UniqueProcess> asked_;
  std::optional<std::chrono::milliseconds> due_;
  sys::WakeTimer timer_;
};

}  // namespace berth::supervise
