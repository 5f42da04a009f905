#include "berth/view/hosts_json.h"

#include <fmt/format.h>

#include "berth/view/json_value.h"
#include "berth/view/listing_json.h"

namespace berth::view {
namespace {

Json totals_json(const Totals& totals) {
  Json models = Json::array();
  for (const ModelTotal& model : totals.models) {
    models.push_back({{"name", model.name},
                      {"memory_total_bytes", nullable(model.memory_total_bytes)},
                      {"devices", model.devices},
                      {"free", model.free},
                      {"hosts_with_free", model.hosts_with_free}});
  }
  Json users = Json::array();
  for (const UserTotal& user : totals.users) {
    users.push_back(
        {{"user", user.user}, {"devices", user.devices}, {"leases", user.leases}, {"waiting", user.waiting}});
  }
  return {{"devices", totals.devices},
          {"free", totals.free},
          {"models", std::move(models)},
          {"users", std::move(users)}};
}

Json head_json(const HostsHead& head) {
  return {{"number", head.number}, {"time_s", head.time_s}, {"every_s", head.every_s}, {"hub", head.is_hub}};
}

Json standing_json(std::span<const LabStanding> queue) {
  Json json = Json::array();
  for (const LabStanding& each : queue)
    json.push_back({{"asked_at", printable(each.origin)}, {"place", each.position}});
  return json;
}

Json bare_json(const std::vector<BareDevice>& devices) {
  Json json = Json::array();
  for (const BareDevice& device : devices)
    json.push_back({{"index", device.index},
                    {"name", device.name},
                    {"memory_total_bytes", nullable(device.memory_total_bytes)},
                    {"memory_used_bytes", nullable(device.memory_used_bytes)},
                    {"utilization_percent", nullable(device.utilization_percent)}});
  return json;
}

std::string_view without_end(std::string_view line) {
  return line.substr(0, line.find_last_not_of('\n') + 1);
}

std::string line_of(Json json) {
  return std::string(without_end(dumped(std::move(json), Layout::line)));
}

/// Such as a host that is down, and what its nvidia-smi says.
std::string bare_host_json(const Host& host) {
  std::string text = host_json(host, "", "");
  text.pop_back();
  return text + ",\"without_berth\":" + line_of(bare_json(*host.bare)) + "}";
}

}  // namespace

std::string host_json(const Host& host, std::string_view listing, std::string_view queue) {
  std::string text = line_of({{"name", host.name},
                              {"url", nullable(host.url)},
                              {"state", host.is_up() ? "up" : "down"},
                              {"error", host.is_up() ? Json(nullptr) : Json(host.error)},
                              {"seen_s", nullable(host.seen_s)}});
  text.pop_back();  // documents that are written already are put in as they are
  text += ",\"snapshot\":";
  text += listing.empty() ? "null" : without_end(listing);
  text += ",\"queue\":";
  text += queue.empty() ? "null" : without_end(queue);
  text += '}';
  return text;
}

std::string host_json(const Host& host) {
  if (host.bare) return bare_host_json(host);
  if (!host.report) return host_json(host, "", "");
  const HostReport& report = *host.report;
  const Listing listing{report.facts, report.ledger, report.verdicts, report.assumed, report.idle};
  return host_json(host, listing_json(listing, Layout::line),
                   queue_json(report.waiters, report.ledger.unlisted, Layout::line));
}

std::string host_change_json(std::string_view before, std::string_view after) {
  constexpr bool kNoExceptions = false;
  constexpr std::size_t kLeastGain = 2;
  // Most of it is new, as of a host that answers for the first time: then neither need be parsed.
  if (before.size() * kLeastGain < after.size()) return "";
  const auto to = nlohmann::json::parse(after, nullptr, kNoExceptions);
  if (!to.is_object()) return "";
  const auto from = nlohmann::json::parse(before, nullptr, kNoExceptions);
  if (!from.is_object()) return "";
  const nlohmann::json change{{"name", to.value("name", "")}, {"patch", nlohmann::json::diff(from, to)}};
  std::string text = change.dump();
  return text.size() * kLeastGain <= after.size() ? text : "";
}

std::pair<std::string, std::string> around_hosts(const HostsHead& head, const Totals& totals) {
  Json start{{"kind", "berth-hosts"}, {"version", 1}};
  start.update(head_json(head));
  // Absent where no store is asked.
  if (!head.queue.empty()) start["line"] = standing_json(head.queue);
  std::string text = line_of(start);
  text.pop_back();
  return {text + ",\"hosts\":[", "],\"summary\":" + line_of(totals_json(totals)) + "}\n"};
}

std::string hosts_json(const HostsHead& head, std::span<const std::string_view> entries,
                       const Totals& totals) {
  auto [text, end] = around_hosts(head, totals);
  for (const std::string_view entry : entries) {
    if (text.back() != '[') text += ',';
    text += entry;
  }
  return text + end;
}

std::string hosts_summary_json(const HostsHead& head, const Hosts& hosts, const Totals& totals) {
  Json json = head_json(head);
  json["hosts"] = Json::array();
  for (const auto& host : hosts) json["hosts"].push_back(host->name);
  json["summary"] = totals_json(totals);
  return dumped(std::move(json), Layout::line);
}

std::string lab_queue_json(std::span<const LabStanding> queue) {
  return dumped({{"line", standing_json(queue)}}, Layout::line);
}

std::string hub_health_json(const HubHealth& health, const Hosts& hosts) {
  constexpr std::ptrdiff_t kMostNamed = 20;
  Json warnings = Json::array();
  std::ptrdiff_t down = 0;
  for (const auto& host : hosts) {
    if (host->is_up()) continue;
    if (++down <= kMostNamed) warnings.push_back(fmt::format("{}: {}", host->name, host->error));
  }
  const bool all = !hosts.empty() && static_cast<std::size_t>(down) == hosts.size();
  Json json{{"kind", "berth-health"}, {"version", 1}};
  json["status"] = down == 0 ? "ok" : all ? "failed" : "stale";
  json["reason"] = down == 0 ? Json(nullptr)
                             : Json(fmt::format("{} of {} hosts {} no answer", down, hosts.size(),
                                                down == 1 ? "gives" : "give"));
  json["taken_at_s"] = health.time_s;
  json["hostname"] = health.hostname;
  json["berth"] = health.version;
  json["warnings"] = std::move(warnings);
  json["history"] = {
      {"status", "off"}, {"reason", "each agent keeps that of its machine"}, {"lost_samples", 0}};
  return dumped(std::move(json), Layout::line);
}

std::string match_json(const std::vector<HostDevice>& devices) {
  Json json{{"kind", "berth-match"}, {"version", 1}, {"devices", Json::array()}};
  for (const HostDevice& each : devices)
    json["devices"].push_back({{"host", each.host->name}, {"uuid", each.device->uuid}});
  return dumped(std::move(json), Layout::line);
}

}  // namespace berth::view
