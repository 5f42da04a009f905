#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/lab_queue/lab_connections.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/lab_queue/store_reading.h"

namespace berth::lab_queue {

/// Tells people of the store and of the lab queue: those who ask on the agent's socket, and whoever
/// shows the line. All of it happens on the loop.
class LabQueueReporter {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  using Show = std::function<void(std::vector<LabStanding>)>;

  /// `show`: as of StoreAgent::show_queue_to; null: nobody shows the line. `name`: of this machine
  /// in the store.
  LabQueueReporter(std::shared_ptr<StoreReading> store, std::shared_ptr<LabConnections> connections,
                   std::string name, Show show)
      : store_(std::move(store)),
        connections_(std::move(connections)),
        name_(std::move(name)),
        show_(std::move(show)) {}

  bool shows() const { return show_ != nullptr; }
  /// Takes note that the store has news. True: it is the first since the line was shown, and says
  /// when to show it again.
  bool is_first_news();
  /// When the line is to be shown again. REQUIRES: shows().
  Instant next_show() const;

  /// Tells what is due. `fault`: why the store does not answer; "": it does. `order`: of the queue,
  /// as it is now.
  void tell(const std::string& fault, const std::function<LabOrder()>& order);

 private:
  /// False: a part of it has been read so far.
  bool has_queue(const std::string& fault) const { return !fault.empty() || store_->now().is_whole(); }
  void send_status(const Connection& connection, const std::string& fault);
  void send_queue(const Connection& connection, std::size_t from, const LabOrder& order);

  std::shared_ptr<StoreReading> store_;
  std::shared_ptr<LabConnections> connections_;
  std::string name_;
  Show show_;
  std::vector<LabStanding> shown_{};
  Instant shown_at_{};
  bool has_news_ = true;  ///< that was not shown yet
};

}  // namespace berth::lab_queue
