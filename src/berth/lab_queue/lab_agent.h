#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/lab_queue/etcd_access.h"
#include "berth/lab_queue/model/lab_tickets.h"

namespace berth::lab_queue {

/// Keeps the requests of this machine in the lab queue, which is in etcd, and tells each request
/// which hosts it may join (docs/store-protocol.md). A request lasts as long as the connection on
/// which it was made. All of it happens on the loop. If the store is down, no request loses its
/// entry.
class LabAgent {
 public:
  /// `log`: a line for the admin.
  LabAgent(boost::asio::io_context& loop, std::function<void(const std::string&)> log);
  ~LabAgent();

  /// Tells the lab queue whenever it has changed, at most once a second: the first ones who stand
  /// in the queue of a host. To be called once, before start().
  void show_queue_to(std::function<void(std::vector<LabStanding>)> show);
  /// Starts the agent of the store. Error: `failure` if its socket cannot be made. To be called
  /// once, before the loop runs.
  Result<void> start(EtcdAccess access);

 private:
  class Body;
  std::shared_ptr<Body> body_;
};

}  // namespace berth::lab_queue
