#include <initializer_list>
#include <map>

#include <fmt/format.h>

#include "berth/site/site_lists.h"
#include "berth/site/toml_words.h"

namespace berth::site {
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
