#include "berth/view/answers_json.h"

#include <algorithm>
#include <array>

#include "berth/base/text_match.h"
#include "berth/view/json_parts.h"
#include "berth/view/verdict_text.h"

namespace berth::view {

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
