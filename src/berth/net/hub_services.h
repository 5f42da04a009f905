#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/agents.h"
#include "berth/agent/answer.h"
#include "berth/net/client.h"

namespace berth::serve {

/// An agent as it is at the moment.
struct AgentNow {
  const Agent* agent = nullptr;
  bool is_up = false;
};

/// What a hub hands on to agents and what it puts together from their answers, when somebody asks: the
/// history of a device, and the hours of users. All of it happens on the loop.
class HubServices {
 public:
  /// `own`: the services of this machine, for the agent "self".
  HubServices(asio::io_context& loop, ByPath<Service> own) : loop_(loop), own_(std::move(own)) {}

  /// /api/v1/hosts/NAME/history.
  void ask_host(const std::vector<AgentNow>& agents, const Call& call, Reply reply);
  /// /api/v1/usage. Hosts that do not answer are missing in it.
  void ask_usage(const std::vector<AgentNow>& agents, const Call& call, const Reply& reply);

  /// `most_bytes`: of an answer.
  void use(std::shared_ptr<ClientSharing> sharing, std::chrono::milliseconds patience,
           std::size_t most_bytes) {
    kept_.reset();
    sharing_ = std::move(sharing);
    patience_ = patience;
    most_bytes_ = most_bytes;
  }

 private:
  using Answered = std::function<void(const Result<Response>&)>;
  struct UsageGathering;

  /// Asks one agent once, over a connection of its own: the kept one is for the hub's own questions.
  void ask(const Agent& agent, const std::string& path, const Parameters& parameters, Answered answered);

  void ask_own(const std::string& path, const Parameters& parameters, Answered answered);

  /// The last answer about hours that nobody is missing in.
  struct Kept {
    std::string asked;
    Page page;
    std::chrono::steady_clock::time_point until;
  };

  asio::io_context& loop_;
  ByPath<Service> own_;
  std::shared_ptr<ClientSharing> sharing_;
  std::chrono::milliseconds patience_{};
  std::size_t most_bytes_ = kMostBodyBytes;
  std::map<std::string, std::shared_ptr<UsageGathering>> gatherings_;  // under way, by what is asked
  std::optional<Kept> kept_;
};

}  // namespace berth::serve
