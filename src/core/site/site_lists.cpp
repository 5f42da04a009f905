#include "berth/site/site_lists.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include <fmt/format.h>

#include "berth/site/site_keys.h"
#include "berth/verdict/site_policy.h"

namespace berth::site {
namespace {

Result<void> read_exclusion(Page& page, const toml::node& node) {
  const auto* entry = node.as_table();
  if (entry == nullptr) return wrong(page, node, "each entry of excluded is a table: [[excluded]]");
  ExcludedDevice excluded;
  for (const auto& [key, value] : *entry) {
    const bool is_device = key.str() == "device";
    if (!is_device && key.str() != "reason") {
      return wrong(
          page, value,
          unknown_key(key.str(), "[[excluded]]", std::array<std::string_view, 2>{"device", "reason"}));
    }
    // An index is naturally written without quotes.
    const auto* number = value.as_integer();
    if (is_device && number != nullptr && number->get() >= 0) {
      excluded.selector = std::to_string(number->get());
      continue;
    }
    BERTH_LET(auto text, text_of(page, value, key.str()));
    (is_device ? excluded.selector : excluded.reason) = std::move(text);
  }
  if (excluded.selector.empty()) {
    return wrong(page, node, "[[excluded]] must name a device: an index, a UUID or the start of one");
  }
  if (excluded.reason.empty()) {
    return wrong(page, node, "[[excluded]] must give a reason: users will be told it");
  }
  page.policy.excluded.push_back(std::move(excluded));
  return {};
}

bool is_whole_path(std::string_view path) {
  return path.starts_with('/') || path.starts_with("~/");
}

// A user's file may add some: that takes GPUs from nobody.
Result<void> read_locks_of(Page& page, std::string_view key, const toml::node& node, std::string_view what,
                           OriginalLock (*row_of)(const std::string&)) {
  std::vector<std::string> paths;
  BERTH_DO(read_texts(page, key, node, paths));
  if (!std::ranges::all_of(paths, is_whole_path))
    return wrong(page, node, fmt::format("{}: a {} begins with / or ~/", key, what));
  for (const std::string& path : paths) page.policy.original_locks.push_back(row_of(path));
  return {};
}

Result<void> check_lock_path(const Page& page, const toml::node& node, const std::string& path) {
  constexpr std::array<std::string_view, 3> kPlaces{"{index}", "{uuid}", "{pci}"};
  const bool has_one =
      std::ranges::count(path, '{') == 1 && std::ranges::count(path, '}') == 1 &&
      std::ranges::any_of(kPlaces, [&](std::string_view place) { return path.contains(place); });
  if (is_whole_path(path) && has_one) return {};
  return wrong(
      page, node,
      "the path of [[foreign_locks]] begins with / or ~/, and has one of {index}, {uuid} and {pci} for "
      "the GPU");
}

Result<void> read_foreign_lock(Page& page, const toml::node& node) {
  const auto* entry = node.as_table();
  if (entry == nullptr) return wrong(page, node, "each entry of foreign_locks is a table: [[foreign_locks]]");
  OriginalLock lock;
  std::string kind;
  const std::pair<std::string_view, std::string*> fields[] = {
      {"path", &lock.path}, {"kind", &kind}, {"user", &lock.user}};
  for (const auto& [key, value] : *entry) {
    const auto* field =
        std::ranges::find(fields, key.str(), &std::pair<std::string_view, std::string*>::first);
    if (field == std::end(fields))
      return wrong(page, value,
                   unknown_key(key.str(), "[[foreign_locks]]",
                               std::array<std::string_view, 3>{"path", "kind", "user"}));
    BERTH_LET(*field->second, text_of(page, value, key.str()));
  }
  BERTH_DO(check_lock_path(page, node, lock.path));
  if (!read_value(kind, lock.kind))
    return wrong(page, node, "the kind of [[foreign_locks]] is \"flock\", \"fcntl\" or \"file\"");
  page.policy.original_locks.push_back(std::move(lock));
  return {};
}

// { name = "gpu1", program = "/opt/berth/bin/berth" }
Result<LabHost> read_host_table(const Page& page, const toml::table& table) {
  LabHost host;
  for (const auto& [key, value] : table) {
    const bool is_name = key.str() == "name";
    if (!is_name && key.str() != "program")
      return wrong(page, value,
                   unknown_key(key.str(), "hosts", std::array<std::string_view, 2>{"name", "program"}));
    BERTH_LET(auto text, text_of(page, value, key.str()));
    if (const auto fit = is_name ? check_host_name(text) : check_host_program(text); !fit)
      return wrong(page, value, fit.error().message);
    (is_name ? host.name : host.program) = std::move(text);
  }
  if (host.name.empty()) return wrong(page, table, "an entry of hosts needs a name");
  return host;
}

Result<LabHost> read_host(const Page& page, const toml::node& node) {
  if (const auto* table = node.as_table()) return read_host_table(page, *table);
  BERTH_LET(auto name, text_of(page, node, "an entry of hosts"));
  if (const auto fit = check_host_name(name); !fit) return wrong(page, node, fit.error().message);
  return LabHost{std::move(name)};
}

// { url = "https://hub:8420", token_file = "/etc/berth-hub.token" }
Result<HubAccess> read_hub_table(const Page& page, const toml::table& table) {
  HubAccess hub;
  const std::map<std::string_view, std::string*> texts{
      {"url", &hub.url}, {"token_file", &hub.token_file}, {"ca_file", &hub.ca_file}};
  for (const auto& [key, value] : table) {
    if (key.str() == "insecure") {
      const auto insecure = value.value_exact<bool>();
      if (!insecure) return wrong(page, value, "insecure must be true or false");
      hub.insecure = *insecure;
      continue;
    }
    const auto text = texts.find(key.str());
    if (text == texts.end())
      return wrong(page, value,
                   unknown_key(key.str(), "hub",
                               std::array<std::string_view, 4>{"url", "token_file", "ca_file", "insecure"}));
    BERTH_LET(*text->second, text_of(page, value, key.str()));
  }
  return hub;
}

}  // namespace

Result<void> read_exclusions(Page& page, std::string_view, const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, "excluded is a list of tables: [[excluded]]");
  for (const toml::node& each : *list) {
    BERTH_DO(read_exclusion(page, each));
  }
  return {};
}

Result<void> read_scheduler_locks(Page& page, std::string_view key, const toml::node& node) {
  return read_locks_of(page, key, node, "folder", lock_of_gpu_scheduler);
}

Result<void> read_safe_gpu_locks(Page& page, std::string_view key, const toml::node& node) {
  return read_locks_of(page, key, node, "file", lock_of_safe_gpu);
}

// A user's file may add some, as above.
Result<void> read_foreign_locks(Page& page, std::string_view, const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, "foreign_locks is a list of tables: [[foreign_locks]]");
  for (const toml::node& each : *list) BERTH_DO(read_foreign_lock(page, each));
  return {};
}

// No rule of the site: a user may name other hosts than it does.
Result<void> read_hosts(Page& page, std::string_view, const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, "hosts is a list: hosts = [\"gpu1\", \"gpu2\"]");
  page.policy.hosts.clear();
  page.policy.hub = {};
  for (const toml::node& each : *list) {
    BERTH_LET(auto host, read_host(page, each));
    if (std::ranges::find(page.policy.hosts, host.name, &LabHost::name) != page.policy.hosts.end())
      return wrong(page, each, fmt::format("hosts names {} twice", host.name));
    page.policy.hosts.push_back(std::move(host));
  }
  return {};
}

// No rule either.
Result<void> read_hub(Page& page, std::string_view key, const toml::node& node) {
  HubAccess hub;
  if (const auto* table = node.as_table()) {
    BERTH_LET(hub, read_hub_table(page, *table));
  } else {
    BERTH_LET(hub.url, text_of(page, node, key));
  }
  if (hub.url.find("://") == std::string::npos)
    return wrong(page, node, "hub needs a URL, such as https://hub:8420");
  page.policy.hub = std::move(hub);
  page.policy.hosts.clear();
  return {};
}

namespace {

/// The keys of an allowance, and those that a table has besides.
std::vector<std::string_view> allowance_keys(std::initializer_list<std::string_view> besides) {
  std::vector<std::string_view> keys;
  for (const LimitRow& row : limit_rows()) keys.push_back(row.key);
  keys.insert(keys.end(), besides);
  return keys;
}

/// False: an allowance has no such key.
Result<bool> read_allowance_key(const Page& page, std::string_view key, std::string_view name,
                                const toml::node& value, Allowance& allowance) {
  const std::string full = fmt::format("{}.{}", key, name);
  for (const LimitRow& row : limit_rows()) {
    if (name != row.key) continue;
    if (row.counts.empty()) {
      BERTH_LET(allowance.*row.allowed, read_seconds(page, full, value, std::nullopt));
    } else {
      BERTH_LET(allowance.*row.allowed, read_count(page, full, value, row.counts));
    }
    return true;
  }
  return false;
}

// 2, or { gpus = 2, waiting = 10, time = "4h" }
Result<Allowance> read_allowance(const Page& page, std::string_view key, const toml::node& node) {
  Allowance allowance;
  const auto* table = node.as_table();
  if (table == nullptr) {
    BERTH_LET(const auto count, read_count(page, key, node, "GPUs"));
    allowance.gpus = count;
    return allowance;
  }
  for (const auto& [name, value] : *table) {
    BERTH_LET(const bool is_read, read_allowance_key(page, key, name.str(), value, allowance));
    if (!is_read) return wrong(page, value, unknown_key(name.str(), key, allowance_keys({})));
  }
  return allowance;
}

Result<void> read_allowances_by_name(const Page& page, std::string_view key, const toml::node& node,
                                     std::map<std::string, Allowance>& allowances) {
  const auto* table = node.as_table();
  if (table == nullptr) return wrong(page, node, fmt::format("{0} is a table of names: [{0}]", key));
  for (const auto& [name, value] : *table) {
    BERTH_LET(const auto allowance, read_allowance(page, fmt::format("{}.{}", key, name.str()), value));
    allowances.insert_or_assign(std::string(name.str()), allowance);
  }
  return {};
}

/// False: a table of limits has no such key.
Result<bool> read_limit_key(const Page& page, std::string_view key, std::string_view name,
                            const toml::node& value, Allowances& limits) {
  if (name == "users") {
    BERTH_DO(read_allowances_by_name(page, fmt::format("{}.users", key), value, limits.of_users));
  } else if (name == "groups") {
    BERTH_DO(read_allowances_by_name(page, fmt::format("{}.groups", key), value, limits.of_groups));
  } else {
    return read_allowance_key(page, key, name, value, limits.each);
  }
  return true;
}

Result<HourlyAllowances> read_hourly_limits(const Page& page, const toml::table& table) {
  const toml::node* when = table.get("when");
  if (when == nullptr)
    return wrong(page, table, "[[limits.hours]] must say when: when = \"Mon-Fri 08:00-18:00\"");
  HourlyAllowances hourly;
  BERTH_LET(const auto text, text_of(page, *when, "limits.hours.when"));
  auto hours = week_hours_from_text(text);
  if (!hours) return wrong(page, *when, hours.error().message);
  hourly.when = *std::move(hours);
  for (const auto& [name, value] : table) {
    if (name.str() == "when") continue;
    BERTH_LET(const bool is_read, read_limit_key(page, "limits.hours", name.str(), value, hourly.limits));
    if (!is_read)
      return wrong(page, value,
                   unknown_key(name.str(), "[[limits.hours]]", allowance_keys({"when", "users", "groups"})));
  }
  return hourly;
}

Result<void> read_hours(const Page& page, const toml::node& node, std::vector<HourlyAllowances>& hours) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, "limits.hours is a list of tables: [[limits.hours]]");
  for (const toml::node& entry : *list) {
    const auto* table = entry.as_table();
    if (table == nullptr) return wrong(page, entry, "an entry of limits.hours is a table: [[limits.hours]]");
    BERTH_LET(auto hourly, read_hourly_limits(page, *table));
    hours.push_back(std::move(hourly));
  }
  return {};
}

}  // namespace

Result<void> read_limits(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  const auto* table = node.as_table();
  if (table == nullptr) return wrong(page, node, "limits is a table: [limits]");
  SiteLimits& limits = page.policy.limits;
  for (const auto& [name, value] : *table) {
    if (name.str() == "hours") {
      BERTH_DO(read_hours(page, value, limits.hours));
      continue;
    }
    BERTH_LET(const bool is_read, read_limit_key(page, "limits", name.str(), value, limits.always));
    if (!is_read)
      return wrong(page, value,
                   unknown_key(name.str(), "[limits]", allowance_keys({"users", "groups", "hours"})));
  }
  return {};
}

}  // namespace berth::site
