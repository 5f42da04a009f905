#include "berth/render/json.h"

#include <fmt/format.h>

#include <array>

#include "berth/core/waiters.h"
#include "berth/render/json_value.h"

namespace berth::render {
namespace {

/// "" is how the core says that a text is not known.
Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json seconds_or_null(std::int64_t at_s) {
  return at_s == 0 ? Json(nullptr) : Json(at_s);
}

Json memory_json(const Memory& memory) {
  return {{"kind", to_text(memory.kind)},
          {"total_bytes", nullable(memory.total_bytes)},
          {"used_bytes", nullable(memory.used_bytes)},
          {"free_bytes", nullable(memory.free_bytes)},
          {"reserved_bytes", nullable(memory.reserved_bytes)}};
}

Json mig_json(const std::optional<MigPlace>& mig) {
  if (!mig) return nullptr;
  return {{"parent_uuid", mig->parent_uuid},
          {"slot", mig->slot},
          {"gpu_instance", nullable(mig->gpu_instance)},
          {"compute_instance", nullable(mig->compute_instance)}};
}

Json health_json(const Health& health) {
  return {{"row_remap_failed", nullable(health.row_remap_failed)},
          {"row_remap_pending", nullable(health.row_remap_pending)},
          {"ecc_uncorrected", nullable(health.ecc_uncorrected)},
          {"retired_pages_pending", nullable(health.retired_pages_pending)}};
}

Json process_json(const Process& process, const Listing& listing) {
  const Facts& facts = listing.facts;
  const auto lease = facts.process_leases.find(process.pid);
  return {{"pid", process.pid},
          {"kind", to_text(process.kind)},
          {"used_bytes", nullable(process.used_bytes)},
          {"uid", nullable(process.uid)},
          {"user", text_or_null(process.user)},
          {"command", text_or_null(process.command)},
          {"container", text_or_null(process.container)},
          {"started_at_s", nullable(process.started_at_s)},
          {"lease", lease == facts.process_leases.end() ? Json(nullptr) : Json(to_text(lease->second))},
          {"assumed", listing.assumed.contains(process.pid)}};
}

Json processes_json(const Device& device, const Listing& listing) {
  if (!device.processes) return nullptr;
  Json list = Json::array();
  for (const Process& process : *device.processes) list.push_back(process_json(process, listing));
  return list;
}

Json culprit_json(const Culprit& culprit) {
  return {{"user", text_or_null(culprit.user)},
          {"pid", culprit.pid == 0 ? Json(nullptr) : Json(culprit.pid)},
          {"command", text_or_null(culprit.command)},
          {"since_s", seconds_or_null(culprit.since_s)},
          {"lease", culprit.lease ? Json(to_text(*culprit.lease)) : Json(nullptr)},
          {"note", text_or_null(culprit.note)}};
}

Json verdict_json(const Verdict& verdict) {
  Json culprits = Json::array();
  for (const Culprit& culprit : verdict.culprits) culprits.push_back(culprit_json(culprit));
  return {{"free", verdict.free()},
          {"clause", verdict.failed ? Json(to_text(*verdict.failed)) : Json(nullptr)},
          {"reason", text_or_null(verdict.reason)},
          {"culprits", std::move(culprits)},
          {"free_bytes", nullable(verdict.free_bytes)}};
}

Json identity_json(const Device& device) {
  return {{"index", device.index},
          {"label", label(device)},
          {"uuid", text_or_null(device.uuid)},
          {"name", text_or_null(device.name)}};
}

Json device_json(const Device& device, const Verdict* verdict, const Listing& listing) {
  Json json = identity_json(device);
  json["pci_bus_id"] = text_or_null(device.pci_bus_id);
  json["mig"] = mig_json(device.mig);
  json["mig_enabled"] = nullable(device.mig_enabled);
  json["state"] = to_text(device.state);
  json["state_reason"] = text_or_null(device.state_reason);
  json["compute_capability"] =
      device.compute_capability
          ? Json(fmt::format("{}.{}", *device.compute_capability / 10, *device.compute_capability % 10))
          : Json(nullptr);
  json["compute_mode"] = device.compute_mode ? Json(to_text(*device.compute_mode)) : Json(nullptr);
  json["persistence"] = nullable(device.persistence);
  json["display_active"] = nullable(device.display_active);
  json["memory"] = memory_json(device.memory);
  json["utilization_percent"] = nullable(device.utilization_percent);
  json["memory_utilization_percent"] = nullable(device.memory_utilization_percent);
  json["temperature_c"] = nullable(device.temperature_c);
  json["power_mw"] = nullable(device.power_mw);
  json["power_limit_mw"] = nullable(device.power_limit_mw);
  json["sm_clock_mhz"] = nullable(device.sm_clock_mhz);
  json["memory_clock_mhz"] = nullable(device.memory_clock_mhz);
  json["fan_percent"] = nullable(device.fan_percent);
  json["performance_state"] = nullable(device.performance_state);
  json["throttle_reasons"] = nullable(device.throttle_reasons);
  json["pcie_generation"] = nullable(device.pcie_generation);
  json["pcie_width"] = nullable(device.pcie_width);
  json["health"] = health_json(device.health);
  json["processes"] = processes_json(device, listing);
  Json leases = Json::array();
  for (const Ticket* ticket : leases_on(listing.ledger, device.uuid)) leases.push_back(to_text(ticket->id));
  json["leases"] = std::move(leases);
  json["idle"] = nullable(is_idle(device, listing.ledger, listing.facts));
  json["idle_since_s"] = nullable(listing.idle.since(device, listing.ledger));
  json["verdict"] = verdict == nullptr ? Json(nullptr) : verdict_json(*verdict);
  return json;
}

Json ticket_json(const Ticket& ticket) {
  return {{"id", to_text(ticket.id)},
          {"phase", ticket.phase == TicketPhase::granted ? "granted" : "waiting"},
          {"uid", ticket.uid},
          {"user", text_or_null(ticket.user)},
          {"pid", ticket.pid == 0 ? Json(nullptr) : Json(ticket.pid)},
          {"kept", ticket.kept},
          {"job_pid", ticket.job_pid == 0 ? Json(nullptr) : Json(ticket.job_pid)},
          {"since_s", seconds_or_null(ticket.since_s)},
          {"count", ticket.count},
          {"shared", ticket.shared},
          {"promise_bytes", ticket.shared ? Json(ticket.promise_bytes) : Json(nullptr)},
          {"devices", ticket.devices},
          {"command", text_or_null(ticket.command)},
          {"note", text_or_null(ticket.note)},
          {"request", text_or_null(ticket.request)}};
}

Json leases_of(const Ledger& ledger) {
  Json list = Json::array();
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted) list.push_back(ticket_json(ticket));
  }
  return list;
}

Json taken_at(const Snapshot& snapshot) {
  return static_cast<double>(snapshot.taken_at_ns / 1'000'000) / 1000.0;
}

Json started(std::string_view kind) {
  return {{"kind", kind}, {"version", 1}};
}

Json request_json(const Request& request) {
  Json conditions = Json::array();
  for (const Expression& condition : request.conditions) conditions.push_back(condition.text());
  return {{"count", request.count},
          {"conditions", std::move(conditions)},
          {"devices", request.devices},
          {"exclude", request.exclude},
          {"order", to_text(request.order)},
          {"seed", nullable(request.seed)},
          {"shared", request.shared},
          {"promise_bytes", request.shared ? Json(request.promise_bytes) : Json(nullptr)},
          {"allowed_processes", request.allowed_processes}};
}

}  // namespace

std::string listing_json(const Listing& listing, Layout layout) {
  const Snapshot& snapshot = listing.facts.snapshot;
  Json json = started("berth-list");
  json["taken_at_s"] = taken_at(snapshot);
  json["source"] = text_or_null(snapshot.source);
  json["driver_version"] = text_or_null(snapshot.driver_version);
  json["cuda_version"] =
      snapshot.cuda_version
          ? Json(fmt::format("{}.{}", *snapshot.cuda_version / 1000, *snapshot.cuda_version % 1000 / 10))
          : Json(nullptr);
  json["stale_reason"] = nullable(snapshot.stale_reason);
  json["inside_lease"] = listing.facts.within.has_value();
  json["notes"] = snapshot.notes;
  json["devices"] = Json::array();
  for (const Device& device : snapshot.devices) {
    const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
    json["devices"].push_back(device_json(device, verdict, listing));
  }
  json["leases"] = leases_of(listing.ledger);
  json["waiting"] = count_waiting(listing.ledger);
  json["odd_tickets"] = Json::array();
  for (const OddTicket& odd : listing.ledger.odd) {
    json["odd_tickets"].push_back({{"name", odd.name}, {"uid", odd.uid}, {"reason", odd.reason}});
  }
  return dumped(json, layout);
}

std::string queue_json(const std::vector<ToldWaiter>& waiters, Layout layout) {
  Json json = started("berth-queue");
  json["waiters"] = Json::array();
  for (const ToldWaiter& waiter : waiters) {
    Json row{{"position", waiter.position}};
    row.update(ticket_json(waiter.ticket));
    row.erase("phase");
    row.erase("devices");
    row["candidates"] = waiter.ticket.candidates;
    row["behind"] = waiter.behind ? Json(to_text(*waiter.behind)) : Json(nullptr);
    row["stopped"] = waiter.stopped;
    row["reason"] = waiter.reason;
    json["waiters"].push_back(std::move(row));
  }
  return dumped(json, layout);
}

std::string queue_json(const Queue& queue, const Style& style, Layout layout) {
  return queue_json(told_waiters(queue, style), layout);
}

std::string leases_json(const Ledger& ledger, Layout layout) {
  Json json = started("berth-leases");
  json["leases"] = leases_of(ledger);
  return dumped(json, layout);
}

std::string error_json(const Error& error) {
  Json json = started("berth-error");
  json["code"] = outcome_of(error.code).name;
  json["message"] = error.message;
  return dumped(json, Layout::line);
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
  return dumped(json, Layout::line);
}

std::string claim_json(const Claim& claim) {
  Json json = started("berth-claim");
  json["lease"] = to_text(claim.ticket.id);
  json["environment"] = Json::object();
  for (const auto& [name, value] : claim.environment) json["environment"][name] = value;
  json["devices"] = Json::array();
  for (const Device* device : claim.devices) json["devices"].push_back(identity_json(*device));
  json["kept_by"] = claim.ticket.pid;
  json["ends_with"] = claim.ticket.job_pid;
  json["until_s"] = seconds_or_null(claim.until_s);
  return dumped(json, Layout::lines);
}

std::string verify_json(const JobConduct& job) {
  Json json = started("berth-verify");
  json["lease"] = to_text(job.lease.id);
  json["user"] = text_or_null(job.lease.user);
  json["conduct"] = to_text(job.report.conduct);
  json["reason"] = conduct_sentence(job);
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
  return dumped(json, Layout::lines);
}

std::string pick_json(const Pick& pick) {
  Json json = started("berth-pick");
  json["cuda_visible_devices"] = pick.visible;
  json["cuda_device_order"] = "PCI_BUS_ID";
  json["devices"] = Json::array();
  for (const std::string& uuid : pick.choice.uuids) {
    if (const Device* device = find_device(pick.snapshot, uuid))
      json["devices"].push_back(identity_json(*device));
  }
  json["notes"] = pick.notes;
  json["lease"] = text_or_null(pick.lease);
  json["held_until_s"] = seconds_or_null(pick.held_until_s);
  return dumped(json, Layout::lines);
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
  return dumped(json, Layout::lines);
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
  return dumped(json, Layout::lines);
}

std::string version_json(std::string_view version) {
  Json json = started("berth-version");
  json["berth"] = version;
  return dumped(json, Layout::lines);
}

}  // namespace berth::render
