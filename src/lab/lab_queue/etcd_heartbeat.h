#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/base/error.h"
#include "berth/lab_queue/etcd_reading.h"

namespace berth::lab_queue {

/// etcd keeps every change until somebody tells it to forget the old ones. Says how far it may
/// forget: every ten minutes, up to where the store was ten minutes ago. A watch that was cut off
/// for no longer goes on where it was. Pure.
class Compaction {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  /// The store was heard to have come to this revision.
  void is_at(std::uint64_t revision, Instant now);
  /// The revision before which all may be forgotten now. nullopt: it is not time for it. Not given
  /// twice.
  std::optional<std::uint64_t> due(Instant now);

 private:
  struct Heard {
    Instant when;
    std::uint64_t revision = 0;
  };

  std::optional<Heard> noted_{};  ///< to be forgotten when it has been kept long enough
  std::uint64_t newest_ = 0;
};

/// That this machine is there, which the store has under a lease of etcd that is renewed; nothing
/// else is under a lease. With each renewal the agent learns how far the store has come, and when
/// it may forget.
class EtcdHeartbeat {
 public:
  using Instant = Compaction::Instant;

  /// `name`: of this machine in the store. `log`: a line for the admin.
  EtcdHeartbeat(std::shared_ptr<EtcdReading> store, std::string name,
                std::function<void(const std::string&)> log)
      : store_(std::move(store)), name_(std::move(name)), log_(std::move(log)) {}

  /// When it is to be renewed again. `anew`: the store does not show it any more; the lease may be
  /// there all the same. Error: `failure`; the store has not answered.
  net::Task<Result<Instant>> renew(bool anew);

 private:
  net::Task<Result<void>> let_forget(Instant now);

  std::shared_ptr<EtcdReading> store_;
  std::string name_;
  std::function<void(const std::string&)> log_;
  std::string lease_;  ///< "": the store has none of ours
  bool is_shown_ = false;
  Compaction compaction_;
  std::string forgetting_fault_;  ///< as it was logged; "": it does forget
};

}  // namespace berth::lab_queue
