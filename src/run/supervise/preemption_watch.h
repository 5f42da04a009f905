#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "berth/lease/session.h"
#include "berth/supervise/idle_watch.h"
#include "berth/sys/bell.h"
#include "berth/sys/clock.h"

namespace berth::supervise {

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
  struct Asked {
    std::string why;           ///< a sentence that says for whom
    std::int64_t grace_s = 0;  ///< between SIGTERM and SIGKILL
  };
  /// nullopt: the lease goes on. From the first answer on, others count the lease as ending.
  std::optional<Asked> asked();

 private:
  using Clock = std::chrono::steady_clock;

  void listen(std::string why);
  void look_at_idleness();
  bool has_to_look();
  std::chrono::milliseconds until_next_tick() const;
  std::optional<Asked> look();
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

}  // namespace berth::supervise
