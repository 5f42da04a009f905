#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/http/settings.h"

namespace berth::hub {

/// A machine that the hub shows.
struct Agent {
  std::string name;
  std::optional<http::Peer> peer;  ///< nullopt: this machine
  std::string refusal{};           ///< why the hub does not ask it; "": it does

  bool operator==(const Agent&) const = default;
};

/// One agent as an admin wrote it, in a file or on the command line.
struct AgentEntry {
  std::string where;  ///< "agents.toml:12", for messages
  std::string name;   ///< "": taken from the URL
  std::string url;    ///< "self": this machine
  http::AgentAccess access;

  bool operator==(const AgentEntry&) const = default;
};

/// "node02=http://node02:1080", "http://node02:1080", "self".
AgentEntry agent_from_word(std::string_view word, const http::AgentAccess& access);
/// The agents of a TOML file. `access` counts for what the file does not say; but `insecure` must
/// be said for each agent. Error: `failure`, with file, line and what is allowed.
Result<std::vector<AgentEntry>> agents_from_toml(std::string_view path, std::string_view text,
                                                 const http::AgentAccess& access);

/// All agents that the settings name; reads the files and tokens. Error: `failure` or `usage`, with
/// the place of the mistake.
Result<std::vector<Agent>> read_agents(const http::HubSettings& settings);

}  // namespace berth::hub
