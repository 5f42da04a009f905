#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "berth/base/error.h"
#include "berth/lab_queue/compaction.h"
#include "berth/lab_queue/etcd_reading.h"

namespace berth::lab_queue {

/// That this machine is there, which the store has under a lease of etcd that is renewed; nothing
/// else is under a lease. With each renewal the agent learns how far the store has come, and when
/// it may forget.
class EtcdHeartbeat {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  /// `name`: of this machine in the store. `log`: a line for the admin.
  EtcdHeartbeat(std::shared_ptr<EtcdReading> store, std::string name,
                std::function<void(const std::string&)> log)
      : store_(std::move(store)), name_(std::move(name)), log_(std::move(log)) {}

  /// When it is to be renewed again. Error: `failure`; the store has not answered.
  net::Task<Result<Instant>> renew();
  /// The store does not show it any more. The lease may be there all the same.
  void is_lost() { is_shown_ = false; }

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
