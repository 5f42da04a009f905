#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/publish.h"
#include "berth/http/answer.h"
#include "berth/http/settings.h"
#include "berth/hub/agents.h"
#include "berth/hub/model/poller_step.h"
#include "berth/net/client.h"
#include "berth/view/server_metrics.h"

namespace berth::hub {

/// A host's row after an answer, or after none, until the step has said what becomes of it.
struct MadeRow {
  Host host;
  http::Part entry;  ///< its text is empty where nothing is new
  std::optional<agent::HostChange> change{};
};
/// Pure. It takes as long as the agent likes.
MadeRow row_after_asking(const agent::PostedHost& before, const Result<http::Response>& answer,
                         std::int64_t now_s);
MadeRow row_of_failure(const agent::PostedHost& before, std::string error);

/// A host, and the means by which it is asked.
struct Polled {
  /// With the row that it has until it is asked.
  Polled(asio::io_context& loop, poller::HostId number, Agent who);

  poller::HostId id;
  Agent agent;
  agent::PostedHost posted{};     ///< what is shown
  std::optional<MadeRow> made{};  ///< what was read last
  std::unique_ptr<net::Client> client{};
  net::Timer bell;  ///< rings when it is to be asked

  poller::WantedHost named() const;
};

/// Everything that a hub answers. `own`: what is published about the hub's own machine, if this is
/// one of the hosts, else null. Pure.
http::Published publish_hub(const std::vector<agent::PostedHost>& posted, const view::HostsHead& head,
                            const std::string& hostname, const http::Published* own,
                            const view::PollCounts& polls = {});

/// The error that a host has until it is asked for the first time.
inline constexpr std::string_view kNotAskedYet = "it has not been asked yet";

/// What is known of the host after its agent was asked for /api/v1/hosts. If the agent tells
/// nothing new, what it told before stays. 304 means that the host is up. Pure; the answer may be
/// anything.
Host after_asking(const Host& before, const Result<http::Response>& answer, std::int64_t now_s);

/// A host after an answer, and the text by which clients are told of it.
struct HostNews {
  Host host;
  std::string entry;  ///< "": nothing is new but the time when it was seen
};
/// The same as after_asking(). If the entry would be much longer than the answer was, that is an
/// error of the agent.
HostNews news_after_asking(const Host& before, const Result<http::Response>& answer, std::int64_t now_s);
/// The same for an answer that the hub could not process.
HostNews news_of_failure(const Host& before, std::string error);

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
  struct KeptPage {
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
  std::optional<KeptPage> kept_;
};

}  // namespace berth::hub
