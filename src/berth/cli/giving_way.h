#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "berth/cli/idle_watch.h"
#include "berth/lease/session.h"
#include "berth/sys/bell.h"

namespace berth::cli {

/// Whether a lease that yields is to end for somebody who waits: rung by whoever waits, its holder decides
/// that for itself, by the whole line.
class GivingWay {
 public:
  /// REQUIRES: both outlive it, and the job has started. A lease that does not yield gives way to nobody, but
  /// while it is idle.
  GivingWay(const leasing::Session& session, leasing::HeldLease& lease);

  /// When to ask again at the latest. nullopt: when it is rung, which JobProcess tells. While it ends, never.
  std::optional<std::chrono::steady_clock::time_point> next() const;

  /// A sentence that says for whom the lease is to end. nullopt: it goes on. From the first sentence on
  /// others count the lease as ending.
  std::optional<std::string> asked();

 private:
  using Clock = std::chrono::steady_clock;

  void listen(std::string why);
  void heed_idleness();
  std::optional<std::string> look();
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
  std::chrono::milliseconds pause_{};
};

}  // namespace berth::cli
