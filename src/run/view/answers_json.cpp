#include "berth/view/answers_json.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/view/json.h"
#include "berth/view/verdict_text.h"

namespace berth::view {

std::string listing_json(const Listing& listing, Layout layout) {
  const Snapshot& snapshot = listing.facts.snapshot;
  Json json = started("berth-list");
  json["taken_at_s"] = taken_at(snapshot);
  json["source"] = text_or_null(snapshot.source);
  json["driver_version"] = text_or_null(snapshot.driver_version);
  json["cuda_version"] =
      snapshot.cuda_version ? Json(version_text(*snapshot.cuda_version, kCuda)) : Json(nullptr);
  json["stale_reason"] = nullable(snapshot.stale_reason);
  json["inside_lease"] = listing.facts.within.has_value() || listing.own.has_value();
  json["own_lease"] = listing.own ? Json(to_text(*listing.own)) : Json(nullptr);
  json["notes"] = snapshot.notes;
  const HostFacts* host = known_host(listing.facts);
  json["host"] = host != nullptr ? text_or_null(host->name) : Json(nullptr);
  json["labels"] = host != nullptr ? Json(host->labels) : Json(nullptr);
  json["devices"] = Json::array();
  const LeasesByDevice leases(listing.ledger);
  for (const Device& device : snapshot.devices) {
    const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
    json["devices"].push_back(device_json(device, verdict, listing, leases));
  }
  json["leases"] = leases_of(listing.ledger, listing.facts.booted_at_s);
  json["waiting"] = count_waiting(listing.ledger);
  json["odd_tickets"] = Json::array();
  for (const OddTicket& odd : listing.ledger.odd) {
    json["odd_tickets"].push_back({{"name", odd.name}, {"uid", odd.uid}, {"reason", odd.reason}});
  }
  json["unlisted"] = unlisted_json(listing.ledger.unlisted,
                                   {{"leases", &Unlisted::leases}, {"odd_tickets", &Unlisted::odd}});
  return dumped(std::move(json), layout);
}

std::string queue_json(const std::vector<Standing>& waiters, const std::vector<Unlisted>& unlisted,
                       Layout layout) {
  Json json = started("berth-queue");
  json["waiters"] = Json::array();
  for (const Standing& waiter : waiters) {
    Json row{{"position", waiter.position}};
    row.update(ticket_json(waiter.ticket, 0));
    row.erase("phase");
    row.erase("until_s");
    row.erase("ending");
    row.erase("devices");
    row["candidates"] = waiter.ticket.candidates;
    row["behind"] = waiter.behind ? Json(to_text(waiter.behind->id)) : Json(nullptr);
    row["starts_at_s"] = nullable(waiter.starts_at_s);
    row["starts_on"] = waiter.starts_on;
    row["stopped"] = waiter.stopped;
    row["held_back"] = waiter.ticket.held_back;
    row["fills_gap_until_s"] = nullable(waiter.fills_gap_until_s);
    row["reason"] = waiter.reason;
    if (waiter.ticket.expected_s) {
      row["expected_s"] = *waiter.ticket.expected_s;
      row["expected_by"] = to_text(expected_by(waiter.ticket));
    }
    json["waiters"].push_back(std::move(row));
  }
  json["unlisted"] = unlisted_json(unlisted, {{"waiting", &Unlisted::waiting}});
  return dumped(std::move(json), layout);
}

std::string leases_json(const Ledger& ledger, std::int64_t booted_at_s, Layout layout) {
  Json json = started("berth-leases");
  json["leases"] = leases_of(ledger, booted_at_s);
  json["unlisted"] = unlisted_json(ledger.unlisted, {{"leases", &Unlisted::leases}});
  return dumped(std::move(json), layout);
}

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

std::string error_json(const Error& error) {
  Json json = started("berth-error");
  json["code"] = outcome_of(error.code).name;
  json["message"] = error.message;
  return dumped(std::move(json), Layout::line);
}

std::string message_of_error(std::string_view document) {
  const Json json = json_from(document);
  if (!json.is_object()) return "";
  const auto message = json.find("message");
  return message != json.end() && message->is_string() ? message->get<std::string>() : "";
}

std::string health_json(const AgentHealth& health) {
  const Snapshot* snapshot = health.snapshot;
  const bool stale = snapshot != nullptr && snapshot->stale_reason;
  Json json = started("berth-health");
  json["status"] = snapshot == nullptr ? "failed" : stale ? "stale" : "ok";
  json["reason"] = snapshot == nullptr ? Json(health.error->message) : nullable(snapshot->stale_reason);
  json["taken_at_s"] = snapshot == nullptr ? Json(nullptr) : taken_at(*snapshot);
  json["hostname"] = health.hostname;
  json["berth"] = health.version;
  json["warnings"] = health.warnings;
  constexpr std::array<std::string_view, 3> kHistory{"off", "ok", "failing"};
  json["history"] = {{"status", kHistory[static_cast<std::size_t>(health.history.status)]},
                     {"reason", text_or_null(health.history.reason)},
                     {"lost_samples", health.history.lost}};
  return dumped(std::move(json), Layout::line);
}

std::string claim_json(const Claim& claim) {
  Json json = started("berth-claim");
  json["lease"] = to_text(claim.ticket.id);
  json["environment"] = Json::object();
  for (const auto& [name, value] : claim.environment) json["environment"][name] = value;
  json["devices"] = Json::array();
  for (const Device* device : claim.devices) json["devices"].push_back(identity_json(*device));
  json["kept_by"] = claim.ticket.taker.pid;
  json["ends_with"] = claim.ticket.job.pid;
  json["until_s"] = seconds_or_null(claim.until_s);
  return dumped(std::move(json), Layout::lines);
}

std::string verify_json(const JobCompliance& job) {
  Json json = started("berth-verify");
  json["lease"] = to_text(job.lease.id);
  json["user"] = text_or_null(job.lease.user);
  json["conduct"] = to_text(job.report.compliance);
  json["reason"] = compliance_sentence(job);
  json["devices"] = Json::array();
  for (const DeviceUse& use : job.report.devices) {
    Json row = identity_json(*use.device);
    row["leased"] = use.leased;
    row["processes"] = use.told ? Json::array() : Json(nullptr);
    for (const Process* process : use.processes) {
      row["processes"].push_back({{"pid", process->pid},
                                  {"used_bytes", nullable(process->used_bytes)},
                                  {"user", text_or_null(process->user)},
                                  {"command", text_or_null(process->command)},
                                  {"assumed", job.assumed.contains(process->pid)}});
    }
    json["devices"].push_back(std::move(row));
  }
  return dumped(std::move(json), Layout::lines);
}

std::string pick_json(const Pick& pick) {
  Json json = started("berth-pick");
  json["vendor"] = pick.mask.vendor;
  json["environment"] = Json::object();
  for (const auto& [name, value] : pick.mask.variables) {
    json["environment"][name] = value;
    json[lowered(name)] = value;
  }
  json["devices"] = Json::array();
  for (const std::string& uuid : pick.choice.uuids) {
    if (const Device* device = find_device(pick.snapshot, uuid))
      json["devices"].push_back(identity_json(*device));
  }
  json["notes"] = pick.notes;
  json["lease"] = text_or_null(pick.lease);
  json["held_until_s"] = seconds_or_null(pick.held_until_s);
  return dumped(std::move(json), Layout::lines);
}

std::string why_json(const Why& why) {
  const auto free = static_cast<std::size_t>(std::ranges::count_if(why.verdicts, &Verdict::free));
  Json json = started("berth-why");
  json["request"] = request_json(why.request);
  json["satisfied"] = free >= why.request.count;
  json["free"] = free;
  json["possible"] = why.possible;
  json["devices"] = Json::array();
  const std::vector<const Device*> judged = devices_of(why.verdicts, why.snapshot);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (judged[i] == nullptr) continue;
    Json row = identity_json(*judged[i]);
    row["verdict"] = verdict_json(why.verdicts[i]);
    json["devices"].push_back(std::move(row));
  }
  json["looser"] = why.looser;
  json["position"] = why.standing ? Json(why.standing->position) : Json(nullptr);
  json["behind"] =
      why.standing && why.standing->behind ? Json(to_text(why.standing->behind->id)) : Json(nullptr);
  json["starts_at_s"] = nullable(why.starts_at_s);
  return dumped(std::move(json), Layout::lines);
}

std::string doctor_json(const std::vector<Finding>& findings) {
  Json json = started("berth-doctor");
  json["findings"] = Json::array();
  Level worst = Level::pass;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.level);
    json["findings"].push_back({{"level", to_text(finding.level)},
                                {"check", finding.check},
                                {"found", finding.found},
                                {"remedy", text_or_null(finding.remedy)}});
  }
  json["level"] = to_text(worst);
  return dumped(std::move(json), Layout::lines);
}

std::string version_json(std::string_view version) {
  Json json = started("berth-version");
  json["berth"] = version;
  return dumped(std::move(json), Layout::lines);
}

}  // namespace berth::view
