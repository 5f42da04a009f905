#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "berth/lease/session.h"
#include "berth/supervise/model/idle_span.h"

namespace berth::supervise {

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

}  // namespace berth::supervise
