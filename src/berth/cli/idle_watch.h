#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "berth/core/idle.h"
#include "berth/lease/session.h"

namespace berth::cli {

/// Makes a lease yield while nothing computes on it, where the site says after what time (idle_leases). Only
/// its holder may: so it looks for itself.
class IdleWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// What a look has changed.
  struct YieldChange {
    bool yields = false;  ///< from now on. false: it does so no more
    std::string why;  ///< yields: "nothing has computed on GPU 3 for 30 minutes (idle_leases of the site)"
  };

  /// REQUIRES: both outlive it. A lease that yields anyway, and one inside of another, are not watched.
  IdleWatch(const leasing::Session& session, leasing::HeldLease& lease);

  /// When the next look is due. nullopt: never.
  std::optional<Time> next() const { return span_ ? std::optional(next_) : std::nullopt; }
  /// Looks, if that is due. nullopt: as before.
  std::optional<YieldChange> go_on();

 private:
  bool computes() const;

  const leasing::Session& session_;
  leasing::HeldLease& lease_;
  std::optional<IdleSpan> span_;
  Time next_{};
};

}  // namespace berth::cli
