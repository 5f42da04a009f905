#include "berth/lease/site_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <map>

#include "berth/base/printable.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/jobs/model/output_cut.h"
#include "berth/lease/toml.h"
#include "berth/lease/toml_words.h"
#include "berth/queue/queue_order.h"
#include "berth/request/request.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/environment.h"
#include "berth/sys/file.h"
#include "berth/sys/system_error.h"
#include "berth/verdict/original_locks.h"

namespace berth::leasing {
namespace {

constexpr std::int64_t kMostTenantGpus = 1024;

constexpr std::int64_t kMostCounted = 10'000;

/// A file and the entry in it that is being read: enough to say where something is wrong.
struct Page {
  std::string_view path;
  bool only_narrow;
  SitePolicy& policy;
};

std::unexpected<Error> wrong(const Page& page, const toml::node& node, std::string_view what) {
  return fail(ErrorCode::failure, fmt::format("{}:{}: {}", page.path, node.source().begin.line, what));
}

Result<std::string> text_of(const Page& page, const toml::node& node, std::string_view key) {
  const auto* text = node.as_string();
  if (text == nullptr || text->get().empty()) {
    return wrong(page, node, fmt::format("{} must be a text in quotes", key));
  }
  return text->get();
}

/// A time or a size. The commonest slip is a number alone.
Result<std::string> amount_of(const Page& page, const toml::node& node, std::string_view key,
                              std::string_view example) {
  if (node.is_number())
    return wrong(page, node,
                 fmt::format("{0} must be a text in quotes, with its unit: {0} = \"{1}\"", key, example));
  return text_of(page, node, key);
}

Result<void> read_tolerance(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto text, amount_of(page, node, key, "512M"));
  const auto bytes = bytes_from_text(text);
  if (!bytes) return wrong(page, node, fmt::format("{}: {}", key, bytes.error().message));
  if (page.only_narrow && *bytes > page.policy.hidden_tolerance_bytes) {
    return wrong(page, node,
                 fmt::format("{} may only be lowered here: the site allows {}", key,
                             bytes_for_people(page.policy.hidden_tolerance_bytes)));
  }
  page.policy.hidden_tolerance_bytes = *bytes;
  return {};
}

// A time, or "forever", which a user may only shorten.
Result<void> read_span(Page& page, std::string_view key, const toml::node& node,
                       std::optional<std::int64_t>& span) {
  BERTH_LET(const auto text, amount_of(page, node, key, "2h"));
  std::optional<std::int64_t> seconds;
  if (text != "forever") {
    const auto parsed = seconds_from_text(text);
    if (!parsed) return wrong(page, node, fmt::format("{}: {}, or \"forever\"", key, parsed.error().message));
    seconds = *parsed;
  }
  if (page.only_narrow && span && (!seconds || *seconds > *span)) {
    return wrong(
        page, node,
        fmt::format("{} may only be shortened here: the site says {}", key, duration_for_people(*span)));
  }
  span = seconds;
  return {};
}

Result<void> read_wait(Page& page, std::string_view key, const toml::node& node) {
  return read_span(page, key, node, page.policy.default_wait_s);
}

Result<void> read_idle_leftovers(Page& page, std::string_view key, const toml::node& node) {
  return read_span(page, key, node, page.policy.idle_leftovers_s);
}

Result<void> read_idle_leases(Page& page, std::string_view key, const toml::node& node) {
  return read_span(page, key, node, page.policy.idle_leases_s);
}

// A time of some seconds, which a user may only shorten.
Result<std::int64_t> read_seconds(const Page& page, std::string_view key, const toml::node& node,
                                  std::optional<std::int64_t> now_s) {
  BERTH_LET(const auto text, amount_of(page, node, key, "2h"));
  const auto seconds = seconds_from_text(text);
  if (!seconds) return wrong(page, node, fmt::format("{}: {}", key, seconds.error().message));
  if (!check_time(*seconds))
    return wrong(page, node, fmt::format("{} must be at least 1s and at most 365d", key));
  if (page.only_narrow && now_s && *seconds > *now_s)
    return wrong(
        page, node,
        fmt::format("{} may only be shortened here: the site says {}", key, time_for_people(*now_s)));
  return *seconds;
}

// Everybody in the line has to go by the same order.
Result<void> is_for_all(const Page& page, std::string_view key, const toml::node& node) {
  if (!page.only_narrow) return {};
  return wrong(page, node,
               fmt::format("only /etc/berth.toml may set {}: the rule is for the queue of all users", key));
}

Result<void> read_assumed_time(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(const auto seconds, read_seconds(page, key, node, std::nullopt));
  page.policy.queue.assumed_s = seconds;
  return {};
}

Result<void> read_most_time(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto seconds, read_seconds(page, key, node, page.policy.most_time_s));
  page.policy.most_time_s = seconds;
  return {};
}

Result<void> read_time_grace(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto seconds, read_seconds(page, key, node, page.policy.time_grace_s));
  page.policy.time_grace_s = seconds;
  return {};
}

Result<void> read_job_output(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto text, amount_of(page, node, key, "100M"));
  const auto bytes = bytes_from_text(text);
  if (!bytes) return wrong(page, node, fmt::format("{}: {}", key, bytes.error().message));
  if (*bytes < kLeastOutput)
    return wrong(
        page, node,
        fmt::format("{} must be a size from {} up, such as \"100M\"", key, bytes_for_people(kLeastOutput)));
  if (page.only_narrow && *bytes > page.policy.job_output_bytes)
    return wrong(page, node,
                 fmt::format("{} may only be lowered here: the site allows {}", key,
                             bytes_for_people(page.policy.job_output_bytes)));
  page.policy.job_output_bytes = *bytes;
  return {};
}

Result<void> read_keep_jobs(Page& page, std::string_view key, const toml::node& node) {
  return read_span(page, key, node, page.policy.keep_jobs_s);
}

Result<void> read_order(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(const auto text, text_of(page, node, key));
  const auto order = queue_order_from_text(text);
  if (!order) return wrong(page, node, fmt::format("{} {}", key, order.error().message));
  page.policy.queue.order = *order;
  return {};
}

Result<void> read_expect(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(const auto text, text_of(page, node, key));
  const auto expect = expect_from_text(text);
  if (!expect) return wrong(page, node, fmt::format("{} {}", key, expect.error().message));
  page.policy.queue.expect = *expect;
  return {};
}

Result<void> read_longest_wait(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  BERTH_LET(const auto seconds, read_seconds(page, key, node, std::nullopt));
  if (seconds < kLeastLongestWaitS)
    return wrong(page, node, fmt::format("{} must be at least {}", key, time_for_people(kLeastLongestWaitS)));
  page.policy.queue.longest_wait_s = seconds;
  return {};
}

Result<void> read_tenant_gpus(Page& page, std::string_view key, const toml::node& node) {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < 1 || number->get() > kMostTenantGpus)
    return wrong(page, node, fmt::format("{} must be a number from 1 to {}", key, kMostTenantGpus));
  const auto gpus = static_cast<unsigned>(number->get());
  std::optional<unsigned>& most = page.policy.tenant_gpus;
  if (page.only_narrow && most && gpus > *most)
    return wrong(page, node, fmt::format("{} may only be lowered here: the site allows {}", key, *most));
  most = gpus;
  return {};
}

Result<void> read_shares(Page& page, std::string_view key, const toml::node& node) {
  constexpr std::int64_t kMostShares = 1000;
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < 1 || number->get() > kMostShares)
    return wrong(page, node, fmt::format("{} must be a number from 1 to {}", key, kMostShares));
  const auto shares = static_cast<unsigned>(number->get());
  std::optional<unsigned>& most = page.policy.shares_per_gpu;
  if (page.only_narrow && most && shares > *most)
    return wrong(page, node, fmt::format("{} may only be lowered here: the site allows {}", key, *most));
  most = shares;
  return {};
}

Result<unsigned> read_count(const Page& page, std::string_view key, const toml::node& node,
                            std::string_view what) {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < 0 || number->get() > kMostCounted)
    return wrong(page, node, fmt::format("{} must be a number of {}, 0 to {}", key, what, kMostCounted));
  return static_cast<unsigned>(number->get());
}

Result<void> read_leave_free(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const unsigned count, read_count(page, key, node, "GPUs"));
  if (page.only_narrow && count < page.policy.leave_free)
    return wrong(page, node,
                 fmt::format("{} may only be raised here: the site says {}", key, page.policy.leave_free));
  page.policy.leave_free = count;
  return {};
}

Result<void> read_tenant_time(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto seconds, read_seconds(page, key, node, page.policy.tenant_time_s));
  page.policy.tenant_time_s = seconds;
  return {};
}

Result<void> read_backfill(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_for_all(page, key, node));
  const auto* value = node.as_boolean();
  if (value == nullptr) return wrong(page, node, fmt::format("{} is true or false", key));
  page.policy.queue.backfill = value->get();
  return {};
}

Result<void> read_names(Page& page, std::string_view key, const toml::node& node,
                        std::vector<std::string>& names) {
  if (page.only_narrow) {
    return wrong(
        page, node,
        fmt::format("only /etc/berth.toml may set {}: a user's own file may only narrow the rules", key));
  }
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, fmt::format("{} must be a list of texts in quotes", key));
  for (const toml::node& each : *list) {
    BERTH_LET(auto text, text_of(page, each, fmt::format("an entry of {}", key)));
    names.push_back(std::move(text));
  }
  return {};
}

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

Result<void> read_exclusions(Page& page, std::string_view, const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, "excluded is a list of tables: [[excluded]]");
  for (const toml::node& each : *list) {
    BERTH_DO(read_exclusion(page, each));
  }
  return {};
}

Result<void> read_programs(Page& page, std::string_view key, const toml::node& node) {
  return read_names(page, key, node, page.policy.ignored_programs);
}

Result<void> read_users(Page& page, std::string_view key, const toml::node& node) {
  return read_names(page, key, node, page.policy.ignored_users);
}

bool is_whole_path(std::string_view path) {
  return path.starts_with('/') || path.starts_with("~/");
}

// A user's file may add some: that takes GPUs from nobody.
Result<void> read_locks_of(Page& page, std::string_view key, const toml::node& node, std::string_view what,
                           OriginalLock (*row_of)(const std::string&)) {
  Page anybodys{page.path, false, page.policy};
  std::vector<std::string> paths;
  BERTH_DO(read_names(anybodys, key, node, paths));
  if (!std::ranges::all_of(paths, is_whole_path))
    return wrong(page, node, fmt::format("{}: a {} begins with / or ~/", key, what));
  for (const std::string& path : paths) page.policy.original_locks.push_back(row_of(path));
  return {};
}

Result<void> read_scheduler_locks(Page& page, std::string_view key, const toml::node& node) {
  return read_locks_of(page, key, node, "folder", lock_of_gpu_scheduler);
}

Result<void> read_safe_gpu_locks(Page& page, std::string_view key, const toml::node& node) {
  return read_locks_of(page, key, node, "file", lock_of_safe_gpu);
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
  constexpr std::array<std::string_view, 3> kKinds{"flock", "fcntl", "file"};
  const auto found = std::ranges::find(kKinds, kind);
  if (found == kKinds.end())
    return wrong(page, node, "the kind of [[foreign_locks]] is \"flock\", \"fcntl\" or \"file\"");
  lock.kind = static_cast<OriginalLockKind>(found - kKinds.begin());
  page.policy.original_locks.push_back(std::move(lock));
  return {};
}

// A user's file may add some, as above.
Result<void> read_foreign_locks(Page& page, std::string_view, const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, "foreign_locks is a list of tables: [[foreign_locks]]");
  for (const toml::node& each : *list) BERTH_DO(read_foreign_lock(page, each));
  return {};
}

Result<void> read_commands(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto text, text_of(page, node, key));
  constexpr std::array<std::string_view, 3> kWords{"full", "program", "none"};
  const auto found = std::ranges::find(kWords, text);
  if (found == kWords.end())
    return wrong(page, node, fmt::format("{} must be \"full\", \"program\" or \"none\"", key));
  const auto telling = static_cast<CommandVisibility>(found - kWords.begin());
  if (page.only_narrow && telling < page.policy.commands)
    return wrong(page, node, fmt::format("{} may only be narrowed here: the site tells less", key));
  page.policy.commands = telling;
  return {};
}

struct CountedAllowance {
  std::string_view name;
  std::optional<unsigned> Allowance::* field;
  std::string_view what;
};
constexpr CountedAllowance kCountedAllowances[] = {{"gpus", &Allowance::gpus, "GPUs"},
                                                   {"lab_gpus", &Allowance::lab_gpus, "GPUs"},
                                                   {"waiting", &Allowance::waiting, "requests"}};

/// The keys of an allowance, and those that a table has besides.
std::vector<std::string_view> allowance_keys(std::initializer_list<std::string_view> besides) {
  std::vector<std::string_view> keys{"gpus", "lab_gpus", "waiting", "time"};
  keys.insert(keys.end(), besides);
  return keys;
}

/// False: an allowance has no such key.
Result<bool> read_allowance_key(const Page& page, std::string_view key, std::string_view name,
                                const toml::node& value, Allowance& allowance) {
  const std::string full = fmt::format("{}.{}", key, name);
  for (const auto& [counted, field, what] : kCountedAllowances) {
    if (name != counted) continue;
    BERTH_LET(allowance.*field, read_count(page, full, value, what));
    return true;
  }
  if (name != "time") return false;
  BERTH_LET(allowance.time_s, read_seconds(page, full, value, std::nullopt));
  return true;
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

// No rule: a connection is kept by the user's own ssh.
Result<void> read_connection(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(const auto text, text_of(page, node, key));
  const auto connection = connection_from_text(text);
  if (!connection) return wrong(page, node, fmt::format("{} {}", key, connection.error().message));
  page.policy.connection = *connection;
  return {};
}

// No rule: without it a user waits by the rules of step 1, as with --hosts.
Result<void> read_store_socket(Page& page, std::string_view key, const toml::node& node) {
  BERTH_LET(auto path, text_of(page, node, key));
  if (!path.starts_with('/'))
    return wrong(page, node,
                 fmt::format("{} must be the whole path of the socket of `berth serve --store`", key));
  page.policy.store_socket = std::move(path);
  return {};
}

// No rule: a user's own file could only have them wrong.
Result<void> is_of_the_machine(const Page& page, std::string_view key, const toml::node& node) {
  if (!page.only_narrow) return {};
  return wrong(page, node, fmt::format("only /etc/berth.toml may set {}: it is about the machine", key));
}

Result<void> read_trusted(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_of_the_machine(page, key, node));
  const auto* list = node.as_array();
  if (list == nullptr)
    return wrong(page, node, fmt::format("{} must be a list of devices: {} = [0, \"GPU-5a1c\"]", key, key));
  for (const toml::node& each : *list) {
    const auto* number = each.as_integer();
    if (number != nullptr && number->get() >= 0) {
      page.policy.trust_leases.push_back(std::to_string(number->get()));
      continue;
    }
    BERTH_LET(auto text, text_of(page, each, fmt::format("an entry of {}", key)));
    page.policy.trust_leases.push_back(std::move(text));
  }
  return {};
}

Result<void> read_host_name(Page& page, std::string_view key, const toml::node& node) {
  BERTH_DO(is_of_the_machine(page, key, node));
  BERTH_LET(auto name, text_of(page, node, key));
  if (const auto fit = check_label(name); !fit)
    return wrong(page, node, fmt::format("{}: {}", key, fit.error().message));
  page.policy.host.name = std::move(name);
  return {};
}

Result<void> read_labels(Page& page, std::string_view key, const toml::node& node) {
  constexpr std::size_t kMostLabels = 64;
  BERTH_DO(is_of_the_machine(page, key, node));
  std::vector<std::string>& labels = page.policy.host.labels;
  labels.clear();
  BERTH_DO(read_names(page, key, node, labels));
  if (labels.size() > kMostLabels)
    return wrong(page, node, fmt::format("{} may have {} entries at most", key, kMostLabels));
  for (auto each = labels.begin(); each != labels.end(); ++each) {
    if (const auto fit = check_label(*each); !fit)
      return wrong(page, node, fmt::format("an entry of {}: {}", key, fit.error().message));
    if (std::find(labels.begin(), each, *each) != each)
      return wrong(page, node, fmt::format("{} names {} twice", key, *each));
  }
  return {};
}

struct Key {
  std::string_view name;
  Result<void> (*read)(Page&, std::string_view, const toml::node&);
};
constexpr auto kKeys = std::to_array<Key>({{"commands", read_commands},
                                           {"hidden_tolerance", read_tolerance},
                                           {"default_wait", read_wait},
                                           {"idle_leftovers", read_idle_leftovers},
                                           {"idle_leases", read_idle_leases},
                                           {"order", read_order},
                                           {"expect", read_expect},
                                           {"longest_wait", read_longest_wait},
                                           {"backfill", read_backfill},
                                           {"assumed_time", read_assumed_time},
                                           {"time", read_most_time},
                                           {"time_grace", read_time_grace},
                                           {"job_output", read_job_output},
                                           {"keep_jobs", read_keep_jobs},
                                           {"tenant_gpus", read_tenant_gpus},
                                           {"tenant_time", read_tenant_time},
                                           {"shares_per_gpu", read_shares},
                                           {"leave_free", read_leave_free},
                                           {"limits", read_limits},
                                           {"hosts", read_hosts},
                                           {"hub", read_hub},
                                           {"connection", read_connection},
                                           {"store", read_store_socket},
                                           {"host_name", read_host_name},
                                           {"labels", read_labels},
                                           {"excluded", read_exclusions},
                                           {"ignored_programs", read_programs},
                                           {"ignored_users", read_users},
                                           {"trust_leases", read_trusted},
                                           {"gpu_scheduler_locks", read_scheduler_locks},
                                           {"safe_gpu_locks", read_safe_gpu_locks},
                                           {"foreign_locks", read_foreign_locks}});
constexpr std::size_t kLongestFile = 1U << 20U;
constexpr std::size_t kUsualFile = 1U << 12U;

/// Of one that gives too much, or cannot be read from its start, as a FIFO. /dev/null is empty.
Result<void> check_kind(int file, const std::string& path) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return sys::fail_errno(fmt::format("reading the site file {}", path));
  if (S_ISREG(status.st_mode)) return {};
  return fail(ErrorCode::failure, fmt::format("the site file {} is not a regular file", path));
}

/// nullopt: there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const sys::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return sys::fail_errno(fmt::format("reading the site file {}", path));
  }
  auto text = sys::read_start(file.get(), kUsualFile);
  if (text && text->size() >= kUsualFile) text = sys::read_start(file.get(), kLongestFile);
  if (!text || text->size() > kLongestFile) BERTH_DO(check_kind(file.get(), path));
  if (text && text->size() > kLongestFile)
    return fail(ErrorCode::failure, fmt::format("the site file {} is longer than 1 MiB", path));
  if (!text) return std::unexpected(context(text.error(), fmt::format("reading the site file {}", path)));
  return *std::move(text);
}

/// False: there is no such file.
Result<bool> read_into(SiteFiles& files, const std::string& path, bool only_narrow) {
  if (path.empty()) return false;
  BERTH_LET(const auto text, read_file(path));
  if (!text) return false;
  BERTH_LET(auto policy, apply_site_text(files.policy, *text, path, only_narrow));
  files.policy = std::move(policy);
  files.read.push_back(path);
  return true;
}

}  // namespace

SiteFilePaths standard_site_file_paths() {
  SiteFilePaths paths;
  paths.site = sys::variable("BERTH_SITE_FILE");
  paths.site_is_named = !paths.site.empty();
  if (!paths.site_is_named) paths.site = "/etc/berth.toml";
  constexpr std::string_view kToml = ".toml";
  if (paths.site.ends_with(kToml))
    paths.excluded = paths.site.substr(0, paths.site.size() - kToml.size()) + ".excluded.toml";
  const std::string configuration(sys::variable("XDG_CONFIG_HOME"));
  const std::string home(sys::variable("HOME"));
  if (configuration.starts_with('/')) {
    paths.user = configuration + "/berth.toml";
  } else if (home.starts_with('/')) {
    paths.user = home + "/.config/berth.toml";
  }
  return paths;
}

Result<SiteFiles> read_site_files(const SiteFilePaths& paths) {
  SiteFiles files;
  BERTH_LET(const bool is_there, read_into(files, paths.site, false));
  BERTH_DO(read_into(files, paths.excluded, false));
  BERTH_DO(read_into(files, paths.user, true));
  // A misspelled path must not put all rules out of force without a word.
  if (paths.site_is_named && !is_there)
    files.policy.not_understood.push_back(
        fmt::format("BERTH_SITE_FILE={} names a file that is not there: correct the path, or unset "
                    "BERTH_SITE_FILE; /dev/null is a file without rules",
                    paths.site));
  return files;
}

Result<SitePolicy> apply_site_text(SitePolicy policy, std::string_view text, std::string_view path,
                                   bool only_narrow) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const std::size_t line = parsed.error().source().begin.line;
    return fail(ErrorCode::failure, fmt::format("{}:{}: {}", path, line,
                                                words_of_bad_line(text, line, parsed.error().description())));
  }
  Page page{path, only_narrow, policy};
  const auto hub = parsed.table()["hub"];
  if (hub && parsed.table()["hosts"])
    return wrong(page, *hub.node(), "hosts and hub exclude each other: a hub knows the hosts");
  for (const auto& [key, value] : parsed.table()) {
    const auto found = std::ranges::find(kKeys, key.str(), &Key::name);
    if (found == kKeys.end()) {
      std::vector<std::string_view> known;
      for (const Key& each : kKeys) known.push_back(each.name);
      policy.not_understood.push_back(wrong(page, value, unknown_key(key.str(), "", known)).error().message);
      continue;
    }
    BERTH_DO(found->read(page, key.str(), value));
  }
  return policy;
}

}  // namespace berth::leasing
