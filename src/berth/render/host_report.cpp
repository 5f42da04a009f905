// The other direction of json.cpp: each reader stands beside the writer of the same name there.
#include "berth/render/host_report.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "berth/render/json_reader.h"

namespace berth::render {
namespace {

constexpr std::size_t kMostLevels = 24;  // ours have ten
constexpr int kVersion = 1;

/// "9.0" of a compute capability, "12.4" of CUDA: major × `major` + minor × `minor`.
Reading<int> read_versions(const JsonReader& json, std::string_view key, int major, int minor) {
  const auto text = json.maybe_text(key);
  if (!text) return std::nullopt;
  int first = 0;
  int second = 0;
  const char* end = text->data() + text->size();
  const auto [dot, wrong] = std::from_chars(text->data(), end, first);
  if (wrong == std::errc() && dot != end && *dot == '.' && first >= 0 && first < 10'000) {
    const auto [rest, worse] = std::from_chars(dot + 1, end, second);
    if (worse == std::errc() && rest == end && second >= 0 && second < 10)
      return first * major + second * minor;
  }
  json.mark(key, "must be a version like 12.4");
  return std::nullopt;
}

TicketId read_id(const JsonReader& json, std::string_view key) {
  return json.word<TicketId>(key).value_or(TicketId{});
}

Memory read_memory(const JsonReader& json) {
  return {json.word<MemoryKind>("kind").value_or(MemoryKind::dedicated),
          json.maybe<std::uint64_t>("total_bytes"), json.maybe<std::uint64_t>("used_bytes"),
          json.maybe<std::uint64_t>("free_bytes"), json.maybe<std::uint64_t>("reserved_bytes")};
}

MigPlace read_mig(const JsonReader& json) {
  return {json.text("parent_uuid"), json.number<unsigned>("slot"), json.maybe<unsigned>("gpu_instance"),
          json.maybe<unsigned>("compute_instance")};
}

Health read_health(const JsonReader& json) {
  return {json.maybe_flag("row_remap_failed"), json.maybe_flag("row_remap_pending"),
          json.maybe<std::uint64_t>("ecc_uncorrected"), json.maybe_flag("retired_pages_pending")};
}

Process read_process(const JsonReader& json, HostReport& report) {
  Process process;
  process.pid = json.number<std::uint32_t>("pid");
  process.kind = json.word<ProcessKind>("kind").value_or(ProcessKind::compute);
  process.used_bytes = json.maybe<std::uint64_t>("used_bytes");
  process.uid = json.maybe<std::uint32_t>("uid");
  process.user = json.text("user");
  process.command = json.text("command");
  process.container = json.text("container");
  process.started_at_s = json.maybe_time("started_at_s");
  if (!json.is_null("lease")) report.facts.process_leases[process.pid] = read_id(json, "lease");
  if (json.flag("assumed")) report.assumed.insert(process.pid);
  return process;
}

void read_readings(const JsonReader& json, Device& device) {
  device.persistence = json.maybe_flag("persistence");
  device.display_active = json.maybe_flag("display_active");
  device.memory = read_memory(json.object("memory"));
  device.utilization_percent = json.maybe<unsigned>("utilization_percent");
  device.memory_utilization_percent = json.maybe<unsigned>("memory_utilization_percent");
  device.temperature_c = json.maybe<int>("temperature_c");
  device.power_mw = json.maybe<unsigned>("power_mw");
  device.power_limit_mw = json.maybe<unsigned>("power_limit_mw");
  device.sm_clock_mhz = json.maybe<unsigned>("sm_clock_mhz");
  device.memory_clock_mhz = json.maybe<unsigned>("memory_clock_mhz");
  device.fan_percent = json.maybe<unsigned>("fan_percent");
  device.performance_state = json.maybe<unsigned>("performance_state");
  device.throttle_reasons = json.maybe<std::uint64_t>("throttle_reasons");
  device.pcie_generation = json.maybe<unsigned>("pcie_generation");
  device.pcie_width = json.maybe<unsigned>("pcie_width");
  device.health = read_health(json.object("health"));
}

Device read_device(const JsonReader& json, HostReport& report) {
  Device device;
  device.index = json.number<unsigned>("index");
  device.uuid = json.text("uuid");
  device.name = json.text("name");
  device.pci_bus_id = json.text("pci_bus_id");
  if (const auto mig = json.maybe_object("mig")) device.mig = read_mig(*mig);
  device.mig_enabled = json.maybe_flag("mig_enabled");
  device.state = json.word<DeviceState>("state").value_or(DeviceState::failed);
  device.state_reason = json.text("state_reason");
  device.compute_capability = read_versions(json, "compute_capability", 10, 1);
  device.compute_mode = json.word<Reading<ComputeMode>>("compute_mode").value_or(std::nullopt);
  read_readings(json, device);
  if (!json.is_null("processes")) {
    device.processes.emplace();
    json.each("processes",
              [&](const JsonReader& each) { device.processes->push_back(read_process(each, report)); });
  }
  return device;
}

Culprit read_culprit(const JsonReader& json) {
  Culprit culprit{json.text("user"),    json.number<std::uint32_t>("pid"),
                  json.text("command"), json.time("since_s"),
                  std::nullopt,         json.text("note")};
  if (!json.is_null("lease")) culprit.lease = read_id(json, "lease");
  return culprit;
}

Verdict read_verdict(const JsonReader& json, const std::string& uuid) {
  Verdict verdict;
  verdict.uuid = uuid;
  verdict.failed = json.word<Clause>("clause");
  verdict.reason = json.text("reason");
  verdict.free_bytes = json.maybe<std::uint64_t>("free_bytes");
  json.each("culprits", [&](const JsonReader& each) { verdict.culprits.push_back(read_culprit(each)); });
  if (json.flag("free") != verdict.free()) json.mark("free", "says other than the clause");
  return verdict;
}

/// What a lease and a waiter have in common.
Ticket read_ticket(const JsonReader& json, TicketPhase phase) {
  Ticket ticket;
  ticket.id = read_id(json, "id");
  ticket.phase = phase;
  ticket.uid = json.number<std::uint32_t>("uid");
  ticket.user = json.text("user");
  ticket.pid = json.number<std::uint32_t>("pid");
  ticket.kept = json.flag("kept");
  ticket.job_pid = json.number<std::uint32_t>("job_pid");
  ticket.since_s = json.time("since_s");
  ticket.count = json.number<unsigned>("count");
  ticket.shared = json.flag("shared");
  ticket.promise_bytes = json.number<std::uint64_t>("promise_bytes");
  ticket.command = json.text("command");
  ticket.note = json.text("note");
  ticket.request = json.text("request");
  if (phase == TicketPhase::granted) {
    ticket.devices = json.texts("devices");
  } else {
    ticket.candidates = json.texts("candidates");
    ticket.joined_s = ticket.since_s;
  }
  return ticket;
}

bool is_ours(const JsonReader& json, std::string_view kind) {
  if (json.text("kind") != kind) json.mark("kind", fmt::format("must be \"{}\"", kind));
  const int version = json.number<int>("version");
  if (version != kVersion)
    json.mark("version",
              fmt::format("is {}, and this Berth reads {}; let both be of one version", version, kVersion));
  return !json.has_fault();
}

void read_devices(const JsonReader& json, HostReport& report) {
  std::vector<Reading<std::int64_t>> idle_since;
  json.each("devices", [&](const JsonReader& each) {
    const Device& device = report.facts.snapshot.devices.emplace_back(read_device(each, report));
    idle_since.push_back(each.maybe_time("idle_since_s"));
    const auto verdict = each.maybe_object("verdict");
    if (verdict.has_value() == is_split(device))
      each.mark("verdict", "must be there, but for a GPU that is split");
    if (verdict) report.verdicts.push_back(read_verdict(*verdict, device.uuid));
  });
  for (std::size_t i = 0; i < idle_since.size(); ++i) {
    if (idle_since[i]) report.idle.adopt(report.facts.snapshot.devices[i], report.ledger, *idle_since[i]);
  }
}

void read_listing(const JsonReader& json, HostReport& report) {
  if (!is_ours(json, "berth-list")) return;
  Snapshot& snapshot = report.facts.snapshot;
  const double taken_at_s = json.maybe_decimal("taken_at_s").value_or(-1);
  if (!(taken_at_s >= 0 && taken_at_s < kLatestSeconds)) return json.mark("taken_at_s", "is no time");
  snapshot.taken_at_ns = std::llround(taken_at_s * 1000) * 1'000'000;
  snapshot.source = json.text("source");
  snapshot.driver_version = json.text("driver_version");
  snapshot.cuda_version = read_versions(json, "cuda_version", 1000, 10);
  snapshot.stale_reason = json.maybe_text("stale_reason");
  snapshot.notes = json.texts("notes");
  // Which devices the lease has is not told.
  if (json.flag("inside_lease")) report.facts.within.emplace();
  json.each("leases", [&](const JsonReader& each) {
    report.ledger.tickets.push_back(read_ticket(each, TicketPhase::granted));
  });
  json.each("odd_tickets", [&](const JsonReader& each) {
    report.ledger.odd.push_back({each.text("name"), each.number<std::uint32_t>("uid"), each.text("reason")});
  });
  read_devices(json, report);
}

void read_queue(const JsonReader& json, HostReport& report) {
  if (!is_ours(json, "berth-queue")) return;
  json.each("waiters", [&](const JsonReader& each) {
    ToldWaiter waiter;
    waiter.ticket = read_ticket(each, TicketPhase::waiting);
    waiter.position = each.number<std::size_t>("position");
    if (!each.is_null("behind")) waiter.behind = read_id(each, "behind");
    waiter.stopped = each.flag("stopped");
    waiter.reason = each.text("reason");
    report.ledger.tickets.push_back(waiter.ticket);
    report.waiters.push_back(std::move(waiter));
  });
}

HostReport read_both(const JsonReader& listing, const JsonReader& queue) {
  HostReport report;
  read_listing(listing, report);
  read_queue(queue, report);
  return report;
}

ToldHost read_host(const JsonReader& json) {
  ToldHost host;
  host.name = json.text("name");
  host.url = json.maybe_text("url");
  host.error = json.text("error");
  host.seen_s = json.maybe_time("seen_s");
  const bool is_up = json.text("state") == "up";
  if (is_up != host.error.empty()) json.mark("error", "and state must say the same");
  const auto snapshot = json.maybe_object("snapshot");
  const auto queue = json.maybe_object("queue");
  if (snapshot && queue)
    host.report = std::make_shared<const HostReport>(read_both(*snapshot, *queue));
  else if (is_up)
    json.mark("snapshot", "and queue must be there: the host is up");
  return host;
}

Result<Json> parse(std::string_view document) {
  if (is_deeper_than(document, kMostLevels))
    return fail(ErrorCode::failure, "it is no document of Berth's: it is nested too deep");
  Json json = Json::parse(document, nullptr, false);
  if (json.is_discarded()) return fail(ErrorCode::failure, "it is no JSON");
  return json;
}

}  // namespace

Result<ToldHosts> read_hosts(std::string_view document) {
  BERTH_LET(const auto parsed, parse(document));
  std::string fault;
  const JsonReader json(parsed, fault, "document");
  ToldHosts told;
  if (is_ours(json, "berth-hosts")) {
    told.is_hub = json.flag("hub");
    json.each("hosts", [&](const JsonReader& each) { told.hosts.push_back(read_host(each)); });
  }
  if (!fault.empty()) return fail(ErrorCode::failure, "it is no document of Berth's: " + fault);
  return told;
}

Result<HostReport> read_report(std::string_view listing, std::string_view queue) {
  BERTH_LET(const auto first, parse(listing));
  BERTH_LET(const auto second, parse(queue));
  std::string fault;
  HostReport report = read_both(JsonReader(first, fault, "listing"), JsonReader(second, fault, "queue"));
  if (!fault.empty()) return fail(ErrorCode::failure, "it is no document of Berth's: " + fault);
  return report;
}

Result<std::string> rewritten(std::string_view document, std::string_view kind, Layout layout) {
  BERTH_LET(const auto parsed, parse(document));
  std::string fault;
  if (!is_ours(JsonReader(parsed, fault, "document"), kind))
    return fail(ErrorCode::failure, "it is no document of Berth's: " + fault);
  return dumped(parsed, layout);
}

}  // namespace berth::render
