#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/peer.h"
#include "berth/agent/settings.h"
#include "berth/core/error.h"

namespace berth::serve {

/// A machine that the hub shows.
struct Agent {
  std::string name;
  std::optional<Peer> peer;  ///< nullopt: this machine
  std::string refusal{};     ///< why it is not asked; "": it is

  bool operator==(const Agent&) const = default;
};

/// One agent as somebody wrote it down.
struct AgentEntry {
  std::string where;  ///< "agents.toml:12", for messages
  std::string name;   ///< "": to be made of the URL
  std::string url;    ///< "self": this machine
  AgentAccess access;
  std::string token{};  ///< where it is not in a file of its own

  bool operator==(const AgentEntry&) const = default;
};

/// "node02=http://node02:1080", "http://node02:1080", "self".
AgentEntry agent_from_word(std::string_view word, const AgentAccess& access);
/// Of a TOML file. `access` counts where the file says nothing, but for `insecure`: there each agent can say
/// it itself. Error: `failure`, with file, line and what is allowed.
Result<std::vector<AgentEntry>> agents_from_toml(std::string_view path, std::string_view text,
                                                 const AgentAccess& access);

/// All agents that the settings name, with files and tokens read. Error: `failure` or `usage`, with the
/// place.
Result<std::vector<Agent>> read_agents(const HubSettings& settings);

}  // namespace berth::serve
