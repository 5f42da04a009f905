#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "berth/agent/store_place.h"
#include "berth/core/error.h"

namespace berth::serve {

/// Keeps the requests of this machine in the line of the lab, which lies in etcd, and says which hosts each
/// may join (docs/store-protocol.md). A request lasts as long as the connection on which it was made. All of
/// it happens on the loop; a store that is down costs nobody a place.
class StoreAgent {
 public:
  /// `log`: a line for the admin.
  StoreAgent(boost::asio::io_context& loop, std::function<void(const std::string&)> log);
  ~StoreAgent();

  /// From now on. Error: `failure`, where its socket cannot be had. To be called once, before the loop runs.
  Result<void> start(StorePlace place);

 private:
  class Body;
  std::shared_ptr<Body> body_;
};

}  // namespace berth::serve
