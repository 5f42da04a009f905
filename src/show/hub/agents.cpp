#include "berth/hub/agents.h"

#include <algorithm>
#include <map>

#include "berth/agent/watcher.h"
#include "berth/base/fail.h"
#include "berth/sys/file.h"

namespace berth::hub {
namespace {

constexpr std::string_view kSelf = "self";
constexpr std::size_t kLongestName = 100;

std::unexpected<Error> wrong_entry(const AgentEntry& entry, const Error& error) {
  return std::unexpected(context(error, entry.where));
}

/// It stands in paths, and in lines of a terminal.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text != "." && text != ".." &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c != '/' && c != 0x7f; });
}

Result<Agent> agent_of(const AgentEntry& entry) {
  Agent agent{entry.name, std::nullopt};
  if (!agent.name.empty() && !is_name(agent.name))
    return fail(ErrorCode::failure, "name: '{}' must be one word of at most {} letters, without /",
                agent.name, kLongestName);
  if (entry.url == kSelf) {
    if (agent.name.empty()) agent.name = agent::own_hostname();
    return agent;
  }
  auto peer = http::peer_from_url(entry.url);
  if (!peer) return std::unexpected(context(peer.error(), "url"));
  peer->authorities = entry.access.ca_file;
  peer->certificate = entry.access.cert_file;
  peer->key = entry.access.key_file;
  peer->insecure = entry.access.insecure;
  if (!entry.access.token_file.empty()) {
    auto token = http::read_token(entry.access.token_file);
    if (!token) return std::unexpected(context(token.error(), "token-file"));
    peer->token = std::move(*token);
  }
  if (peer->certificate.empty() != peer->key.empty())
    return fail(ErrorCode::failure, "cert-file and key-file belong together: give both or neither");
  if (const auto checked = check(*peer); !checked)
    agent.refusal =
        checked.error().message + " (token-file); or allow it: insecure = true, or --agent-insecure";
  agent.peer = std::move(*peer);
  return agent;
}

/// Agents without a name are called by their host, and where several are on one host, by their port
/// too.
void name_by_host(std::vector<Agent>& agents) {
  std::map<std::string, unsigned> on_host;
  for (const Agent& agent : agents) on_host[agent.name.empty() ? agent.peer->host : agent.name] += 1;
  for (Agent& agent : agents) {
    if (!agent.name.empty()) continue;
    const http::Peer& peer = *agent.peer;
    agent.name = on_host[peer.host] == 1 ? peer.host : fmt::format("{}:{}", peer.host, peer.port);
  }
}

}  // namespace

AgentEntry agent_from_word(std::string_view word, const http::AgentAccess& access) {
  const std::size_t equals = word.substr(0, word.find("://")).find('=');
  const bool named = equals != std::string_view::npos;
  return {fmt::format("--agent {}", word), std::string(named ? word.substr(0, equals) : ""),
          std::string(named ? word.substr(equals + 1) : word), access};
}

Result<std::vector<Agent>> read_agents(const http::HubSettings& settings) {
  std::vector<AgentEntry> entries;
  if (!settings.agents_file.empty()) {
    const std::string& path = settings.agents_file;
    BERTH_LET(const auto text, sys::read_named(path, 4, fmt::format("reading the agents in {}", path)));
    BERTH_LET(entries, agents_from_toml(path, text, settings.access));
  }
  for (const std::string& word : settings.agents) entries.push_back(agent_from_word(word, settings.access));

  std::vector<Agent> agents;
  for (const AgentEntry& entry : entries) {
    auto agent = agent_of(entry);
    if (!agent) return wrong_entry(entry, agent.error());
    agents.push_back(std::move(*agent));
  }
  name_by_host(agents);
  std::map<std::string_view, std::string_view> places;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const auto [before, fresh] = places.emplace(agents[i].name, entries[i].where);
    if (!fresh)
      return wrong_entry(entries[i],
                         {ErrorCode::failure, fmt::format("name: '{}' is taken by {}; give another",
                                                          agents[i].name, before->second)});
  }
  return agents;
}

}  // namespace berth::hub
