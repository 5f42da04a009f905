
#include <array>
#include <vector>

#include "berth/base/fail.h"
#include "berth/hub/agents.h"
#include "berth/site/toml.h"
#include "berth/site/toml_words.h"

namespace berth::hub {
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
