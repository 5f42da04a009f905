#include "berth/view/json.h"

#include <array>

#include "berth/base/text_match.h"
#include "berth/queue/expectation.h"
#include "berth/queue/standing.h"
#include "berth/request/request_fields.h"
#include "berth/view/device_json.h"
#include "berth/view/json_value.h"
#include "berth/view/version_text.h"

namespace berth::view {
namespace {

Json taken_at(const Snapshot& snapshot) {
  return static_cast<double>(snapshot.taken_at_ns / 1'000'000) / 1000.0;
}

Json started(std::string_view kind) {
  return {{"kind", kind}, {"version", 1}};
}

struct InJson {
  Json operator()(const std::vector<Expression>& conditions) const {
    Json texts = Json::array();
    for (const Expression& condition : conditions) texts.push_back(condition.text());
    return texts;
  }
  Json operator()(Order order) const { return to_text(order); }
  template <class T>
  Json operator()(const std::optional<T>& value) const {
    return nullable(value);
  }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

}  // namespace

Json request_json(const Request& request) {
  Json json = Json::object();
  for (const RequestField& field : request_fields()) {
    const std::string_view key = name_in(&RequestField::json, field);
    if (!key.empty()) json[std::string(key)] = with_member(field, request, InJson());
  }
  // Without a share there is nothing to promise; 0 would be a promise.
  if (!request.shared) json["promise_bytes"] = nullptr;
  return json;
}

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

std::string error_json(const Error& error) {
  Json json = started("berth-error");
  json["code"] = outcome_of(error.code).name;
  json["message"] = error.message;
  return dumped(std::move(json), Layout::line);
}

std::string message_of_error(std::string_view document) {
  const Json json = Json::parse(document, nullptr, false);
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
