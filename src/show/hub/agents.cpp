#include "berth/hub/agents.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "berth/agent/watcher.h"
#include "berth/base/text.h"
#include "berth/site/toml.h"
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

namespace {

/// Where in the file something is read, and who may say it: an agent, or the head of the file for
/// all of them.
struct AgentTable {
  std::string_view path;
  AgentEntry& entry;
  bool is_head = false;
};

std::unexpected<Error> wrong_value(const AgentTable& table, const toml::node& node, std::string_view what) {
  return fail(ErrorCode::failure, "{}:{}: {}", table.path, node.source().begin.line, what);
}

struct TextKey {
  std::string_view name;
  std::string& (*place)(AgentEntry&);
  bool in_head;
};
constexpr std::array kTextKeys{
    TextKey{"name", [](AgentEntry& e) -> std::string& { return e.name; }, false},
    TextKey{"url", [](AgentEntry& e) -> std::string& { return e.url; }, false},
    TextKey{"token-file", [](AgentEntry& e) -> std::string& { return e.access.token_file; }, true},
    TextKey{"ca-file", [](AgentEntry& e) -> std::string& { return e.access.ca_file; }, true},
    TextKey{"cert-file", [](AgentEntry& e) -> std::string& { return e.access.cert_file; }, true},
    TextKey{"key-file", [](AgentEntry& e) -> std::string& { return e.access.key_file; }, true}};

std::vector<std::string_view> known_in(const AgentTable& table) {
  std::vector<std::string_view> names;
  for (const TextKey& key : kTextKeys) {
    if (!table.is_head || key.in_head) names.push_back(key.name);
  }
  names.push_back(table.is_head ? "[[agent]]" : "insecure");
  return names;
}

Result<void> read_key(const AgentTable& table, std::string_view key, const toml::node& node) {
  if (key == "insecure" && !table.is_head) {
    const auto* flag = node.as_boolean();
    if (flag == nullptr) return wrong_value(table, node, "insecure: must be true or false");
    table.entry.access.insecure = flag->get();
    return {};
  }
  for (const TextKey& each : kTextKeys) {
    if (each.name != key || (table.is_head && !each.in_head)) continue;
    const auto* text = node.as_string();
    if (text == nullptr || text->get().empty())
      return wrong_value(table, node, fmt::format("{}: must be a text in quotes", key));
    each.place(table.entry) = text->get();
    return {};
  }
  if (table.is_head && key == "AGENTS")
    return wrong_value(table, node,
                       fmt::format("AGENTS is of nvgpu; make the file of a hub from it: python "
                                   "-m nvgpu.agents {} > agents.toml",
                                   table.path));
  return wrong_value(table, node, site::unknown_key(key, table.is_head ? "" : "[[agent]]", known_in(table)));
}

Result<AgentEntry> read_agent(std::string_view path, const toml::node& node,
                              const http::AgentAccess& access) {
  AgentEntry entry{fmt::format("{}:{}", path, node.source().begin.line), "", "", access};
  const AgentTable table{path, entry};
  const auto* keys = node.as_table();
  if (keys == nullptr) return wrong_value(table, node, "each agent is a table: [[agent]]");
  for (const auto& [key, value] : *keys) {
    BERTH_DO(read_key(table, key.str(), value));
  }
  if (entry.url.empty())
    return wrong_value(table, node, "[[agent]] needs url = \"https://node01:8420\", or \"self\"");
  return entry;
}

}  // namespace

Result<std::vector<AgentEntry>> agents_from_toml(std::string_view path, std::string_view text,
                                                 const http::AgentAccess& access) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const std::size_t line = parsed.error().source().begin.line;
    return fail(ErrorCode::failure, "{}:{}: {}", path, line,
                site::words_of_bad_line(text, line, parsed.error().description()));
  }
  AgentEntry head{"", "", "", access};
  head.access.insecure = false;
  const toml::array* list = nullptr;
  for (const auto& [key, value] : parsed.table()) {
    const AgentTable table{path, head, true};
    if (key.str() == "agent") {
      list = value.as_array();
      if (list == nullptr) return wrong_value(table, value, "agents are a list of tables: [[agent]]");
    } else if (auto read = read_key(table, key.str(), value); !read) {
      return std::unexpected(read.error());
    }
  }
  std::vector<AgentEntry> entries;
  if (list == nullptr) return entries;
  for (const toml::node& each : *list) {
    BERTH_LET(auto entry, read_agent(path, each, head.access));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace berth::hub
