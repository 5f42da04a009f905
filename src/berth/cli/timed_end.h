#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/cli/lease_clock.h"
#include "berth/sys/wake_timer.h"

namespace berth::cli {

/// Ends a job when the time of its lease is over: a warning, then SIGTERM to all its processes, and SIGKILL
/// after a grace.
class TimedEnd {
 public:
  using Moment = std::optional<std::chrono::steady_clock::time_point>;

  /// To be made before the job starts: if this process is stopped right after the start, it needs the timer.
  TimedEnd(leasing::HeldLease& lease, std::chrono::seconds grace);

  /// The job is this shell. It gets SIGHUP, as from a terminal that closes, because interactive shells ignore
  /// SIGTERM.
  void job_is_shell(pid_t shell) { shell_ = shell; }

  /// When something is due. nullopt: never.
  Moment next() const;
  /// Does what is due. `job` gives all processes of the job; it is called when they are to end. Gives the
  /// seconds that are left, if it has warned now.
  std::optional<std::int64_t> go_on(const std::function<std::vector<pid_t>()>& job);
  bool is_over() const { return clock_.is_over(); }
  /// Ends the job now. `why`: a sentence for its user.
  void end_now(const std::string& why, std::chrono::seconds grace);

 private:
  void ask(const std::vector<pid_t>& job) const;
  void set_timer();

  std::string why_;  ///< why it ends, if not because its time is over
  std::optional<pid_t> shell_;
  LeaseClock clock_;
  sys::WakeTimer timer_;
};

/// The earlier of two moments, of which there may be none.
TimedEnd::Moment earlier(TimedEnd::Moment a, TimedEnd::Moment b);

}  // namespace berth::cli
