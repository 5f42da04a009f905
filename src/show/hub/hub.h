#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/http/answer.h"
#include "berth/hub/agents.h"
#include "berth/machines/host.h"

namespace berth::hub {

/// Asks agents again and again, each independently, and publishes what they tell. All of it happens
/// on the loop. A host that answers late, badly or never does not delay the others.
class Hub {
 public:
  struct Rounds {
    std::vector<Agent> agents;
    std::chrono::seconds every{5};
    std::chrono::seconds patience{5};
  };
  using Publish = std::function<void(std::shared_ptr<const http::Published>)>;
  using Log = std::function<void(const std::string&)>;

  /// `own`: the services of this machine's history, for the agent "self". `log`: a line for the
  /// admin.
  Hub(boost::asio::io_context& loop, Publish publish, Log log, http::ByPath<http::Service> own);
  ~Hub();

  /// Asks these agents from now on. What agents that were there before have told is kept. Reads
  /// certificates anew. To be called in the loop's thread, or before it runs.
  void apply(Rounds rounds);
  /// Takes what was published of this machine, for the agent "self". May be called in any thread.
  void take_own(std::shared_ptr<const http::Published> own);
  /// Takes the lab queue, as it is now. In the loop's thread.
  void take_lab_queue(std::vector<LabStanding> queue);
  /// The questions that the hub passes on to agents: /api/v1/hosts/NAME/history, and /api/v1/usage
  /// of all. In the loop's thread.
  void ask_host(const http::Call& call, http::Reply reply);
  void ask_usage(const http::Call& call, const http::Reply& reply);

 private:
  class Body;
  std::shared_ptr<Body> body_;
};

}  // namespace berth::hub
