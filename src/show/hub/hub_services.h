#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/http/answer.h"
#include "berth/hub/agents.h"
#include "berth/net/client.h"

namespace berth::hub {

/// An agent and its present state.
struct AgentNow {
  const Agent* agent = nullptr;
  bool is_up = false;
};

/// Answers of a hub for which it asks agents when a client asks: the history of a device, the
/// timeline of a host, and the hours of users, which it adds up from their answers. All of it
/// happens on the loop.
class HubServices {
 public:
  /// `own`: the services of this machine, for the agent "self".
  HubServices(asio::io_context& loop, http::ByPath<http::Service> own) : loop_(loop), own_(std::move(own)) {}

  /// /api/v1/hosts/NAME/history and …/timeline.
  void ask_host(const std::vector<AgentNow>& agents, const http::Call& call, http::Reply reply);
  /// /api/v1/usage. The answer names the hosts that did not answer.
  void ask_usage(const std::vector<AgentNow>& agents, const http::Call& call, const http::Reply& reply);

  /// `most_bytes`: the most that is read of an answer.
  void use(std::shared_ptr<net::ClientSharing> sharing, std::chrono::milliseconds patience,
           std::size_t most_bytes) {
    kept_.reset();
    sharing_ = std::move(sharing);
    patience_ = patience;
    most_bytes_ = most_bytes;
  }

 private:
  using Answered = std::function<void(const Result<http::Response>&)>;
  struct UsageCollection;

  /// Asks one agent once, over a connection of its own, because the open connection is for the
  /// hub's own questions.
  void ask(const Agent& agent, const std::string& path, const http::Parameters& parameters,
           Answered answered);

  void ask_own(const std::string& path, const http::Parameters& parameters, Answered answered);

  /// The last answer about hours in which no host is missing.
  struct Kept {
    std::string asked;
    http::Page page;
    std::chrono::steady_clock::time_point until;
  };

  asio::io_context& loop_;
  http::ByPath<http::Service> own_;
  std::shared_ptr<net::ClientSharing> sharing_;
  std::chrono::milliseconds patience_{};
  std::size_t most_bytes_ = net::kMostBodyBytes;
  std::map<std::string, std::shared_ptr<UsageCollection>> collections_;  // under way, by what is asked
  std::optional<Kept> kept_;
};

}  // namespace berth::hub
