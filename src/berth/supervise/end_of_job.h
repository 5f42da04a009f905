#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/job/job_end.h"
#include "berth/supervise/lease_clock.h"
#include "berth/sys/clock.h"
#include "berth/sys/wake_timer.h"

namespace berth::supervise {

/// Ends the job of a lease that this process holds, for whatever reason, in the steps of
/// job/job_end.h.
class EndOfJob {
 public:
  /// Gives all living processes of the job.
  using Processes = std::function<std::vector<pid_t>()>;

  /// To be made before the job starts: if this process is stopped right after the start, it needs
  /// the timer. `grace`: between the last SIGTERM and SIGKILL, where the caller says no other one.
  EndOfJob(leasing::HeldLease& lease, std::chrono::seconds grace);

  /// The command has started. A shell gets SIGHUP as well, as from a terminal that closes, because
  /// interactive shells ignore SIGTERM.
  void command_is(pid_t command, bool is_shell);

  /// When something is due. nullopt: never.
  sys::Deadline next() const;
  /// Does what is due. Gives the seconds that are left of the time of the lease, if it has warned
  /// now.
  std::optional<std::int64_t> go_on(const Processes& job);
  /// Somebody has asked by SIGTERM that the job end.
  void release(const Processes& job) { take(ReleaseWish{}, job); }
  void cancel(const Processes& job) { take(CancelWish{grace_}, job); }
  /// The lease yields. `why`: a sentence for its user.
  void yield(const std::string& why, std::chrono::seconds grace, const Processes& job);
  /// The command has ended. `left`: what it has left.
  void command_has_ended(const Processes& left) { take(CommandGone{}, left); }

  /// Somebody, or the time of the lease, has asked the job to end.
  bool has_asked() const;
  /// What is left will be killed, so nobody else need see to it.
  bool will_kill() const;
  /// All of the job got SIGTERM, and nobody will kill what does not heed it.
  bool has_only_asked() const;

 private:
  void take(const EndEvent& event, const Processes& job);
  void ask_command(const std::vector<pid_t>& job);
  void ask(const std::vector<pid_t>& job);
  void hang_up_shell() const;
  void set_timer();
  std::optional<std::chrono::milliseconds> left() const;

  std::chrono::seconds grace_;
  std::optional<pid_t> command_;
  bool is_shell_ = false;
  LeaseClock clock_;
  JobEnd end_;
  std::set<std::pair<pid_t, std::uint64_t>> asked_;  ///< with their start: a pid comes again
  sys::WakeTimer timer_;
};

/// The earlier of the two.
sys::Deadline earlier(sys::Deadline a, sys::Deadline b);

}  // namespace berth::supervise
