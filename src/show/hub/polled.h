#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "berth/agent/hosts_pages.h"
#include "berth/hub/agents.h"
#include "berth/hub/model/poller_step.h"
#include "berth/net/client.h"

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

  poller::Named named() const;
};

}  // namespace berth::hub
