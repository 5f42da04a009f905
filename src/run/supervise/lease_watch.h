#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/job/run_end.h"
#include "berth/lease/session.h"
#include "berth/supervise/model/leased_run_step.h"
#include "berth/sys/clock.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"

namespace berth::supervise {

/// The time limit of a lease that this process holds. It goes by the boot clock, which goes on
/// while the machine sleeps, and which nobody can set.
class LeaseClock {
 public:
  /// Counts from the grant. REQUIRES: the lease outlives this object.
  explicit LeaseClock(leasing::HeldLease& lease);

  /// How long until something is due. nullopt: never, because the lease has no time limit, or its
  /// time is over.
  std::optional<std::chrono::milliseconds> left() const;
  /// What is due now: each step once. First looks whether the lease was extended meanwhile; then
  /// the end is put off, and another warning will come.
  TimeDue due_now();
  /// REQUIRES: the lease has a time limit.
  std::chrono::seconds time() const;

 private:
  std::chrono::milliseconds since_grant() const;

  leasing::HeldLease& lease_;
  std::chrono::milliseconds granted_;
  std::optional<JobTime> job_;
  bool is_over_ = false;
};

/// The warning to the user before a lease ends. `time`: its time limit.
std::string warning_of(std::chrono::milliseconds time, const std::string& lease_name);

/// Makes a lease yield while nothing computes on its devices, if the site has `idle_leases`. Only
/// the holder of a lease may do so, and therefore it looks itself.
class IdleWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// What a look has changed.
  struct YieldChange {
    bool yields = false;  ///< from now on; false: no longer
    std::string why;  ///< yields: "nothing has computed on GPU 3 for 30 minutes (idle_leases of the site)"
  };

  /// REQUIRES: session and lease outlive this object. It does not watch a lease that yields anyway,
  /// or a lease inside another.
  IdleWatch(const leasing::Session& session, leasing::HeldLease& lease);

  /// When the next look is due. nullopt: never.
  std::optional<Time> next() const { return span_ ? std::optional(next_) : std::nullopt; }
  /// Looks, if a look is due. nullopt: nothing has changed.
  std::optional<YieldChange> go_on();

 private:
  Reading<bool> computes() const;

  const leasing::Session& session_;
  leasing::HeldLease& lease_;
  std::optional<IdleSpan> span_;
  bool gives_way_ = false;  ///< by the last change
  Time next_{};
};

/// Decides whether a lease that yields is to end for a waiter. The waiter rings; the holder of the
/// lease then reads the whole queue and decides for itself.
class PreemptionWatch {
 public:
  /// REQUIRES: session and lease outlive this object, and the job has started. A lease that does
  /// not yield gives way only while it is idle, if the site says so.
  PreemptionWatch(const leasing::Session& session, leasing::HeldLease& lease);

  /// The latest moment to call `asked` again. nullopt: when somebody rings, which JobProcess tells;
  /// never, once the lease is ending.
  sys::Deadline next() const;

  /// The lease is to end for a request that waits.
  struct EndDemand {
    std::string why;           ///< a sentence that says for whom
    std::int64_t grace_s = 0;  ///< between SIGTERM and SIGKILL
  };
  /// nullopt: the lease goes on. From the first answer on, others count the lease as ending.
  std::optional<EndDemand> asked();

 private:
  using Clock = std::chrono::steady_clock;

  void listen(std::string why);
  void look_at_idleness();
  bool has_to_look();
  std::chrono::milliseconds until_next_tick() const;
  std::optional<EndDemand> look();
  void listen_less_often();

  const leasing::Session& session_;
  leasing::HeldLease& lease_;
  IdleWatch idle_;
  std::string why_;  ///< it yields
  const sys::Bell* bell_ = nullptr;
  std::optional<sys::BellSignal> signal_;
  bool rung_ = false;
  bool seems_asked_ = false;  ///< by the last look
  bool ends_ = false;
  Clock::time_point deaf_until_{};
  Clock::time_point next_tick_{};  ///< when it looks though nobody has rung
  std::chrono::milliseconds pause_{};
};

/// The signals by which this process ends its job, as job/run_end.h says, and the timer that
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
