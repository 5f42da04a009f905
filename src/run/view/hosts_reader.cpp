// The other direction of answers_json.cpp: each reader stands beside the writer of the same name
// there.
#include "berth/view/hosts_reader.h"

#include <algorithm>

#include <cmath>
#include <concepts>
#include <map>
#include <set>

#include "berth/base/record_fields.h"
#include "berth/base/text.h"
#include "berth/device/device_readings.h"
#include "berth/view/json.h"

namespace berth::view {
namespace {

constexpr std::size_t kMostLevels = 24;  // ours have ten
constexpr int kVersion = 1;

Reading<int> read_version(const JsonReader& json, std::string_view key, VersionForm form) {
  return version_from_text(json.reading_text(key).value_or(""), form);
}

TicketId read_id(const JsonReader& json, std::string_view key) {
  return json.word<TicketId>(key).value_or(TicketId{});
}

/// Says of each thing by which others are told apart whether it comes for the first time.
template <class Name>
class Names {
 public:
  void take(const Name& name, const JsonReader& json, std::string_view key) {
    if (!seen_.insert(name).second) json.mark(key, "comes twice");
  }

 private:
  std::set<Name> seen_;
};

MigPlacement read_mig(const JsonReader& json) {
  json.needs("parent_uuid");
  return {json.text("parent_uuid"), json.needed<unsigned>("slot"), json.reading<unsigned>("gpu_instance"),
          json.reading<unsigned>("compute_instance")};
}

/// Reads one value of a device: the other direction of ReadingAsJson.
struct ReadingFromJson {
  const JsonReader& json;
  const DeviceReading& row;

  void operator()(std::string& text) const { text = json.reading_text(row.name).value_or(""); }
  void operator()(unsigned&) const {}  // the index, which is needed, is read as such
  void operator()(Reading<bool>& value) const { value = json.reading_flag(row.name); }
  template <std::integral Number>
  void operator()(Reading<Number>& value) const {
    value = json.reading<Number>(row.name);
  }
  void operator()(Reading<int>& value) const {
    value = row.kind == FieldKind::version ? read_version(json, row.name, kCapability)
                                           : json.reading<int>(row.name);
  }
  /// A word that is missing is read as one that is not known: a state that nobody tells is not
  /// "ok".
  template <class Word>
    requires requires(Word& word) { read_value(std::string_view(), word); }
  void operator()(Word& word) const {
    read_value(json.reading_text(row.name).value_or(""), word);
  }
};

void read_readings(const JsonReader& json, Device& device) {
  const JsonReader memory = json.part("memory");
  const JsonReader health = json.part("health");
  for (const DeviceReading& row : device_readings()) {
    const std::string_view part = part_of(row);
    const JsonReader& place = part == "memory" ? memory : part == "health" ? health : json;
    with_value(row, device, ReadingFromJson{place, row});
  }
}

// The same process may stand on several devices.
void add_lease_of(std::uint32_t pid, TicketId lease, Facts& facts) {
  const auto [first, last] = facts.process_leases.equal_range(pid);
  if (std::none_of(first, last, [&](const auto& known) { return known.second == lease; }))
    facts.process_leases.emplace(pid, lease);
}

Process read_process(const JsonReader& json, HostReport& report) {
  Process process;
  process.pid = json.needed<std::uint32_t>("pid");
  // Of a kind that is not known it is taken to compute: then its device is not thought idle.
  read_value(json.reading_text("kind").value_or(""), process.kind);
  process.used_bytes = json.reading<std::uint64_t>("used_bytes");
  process.uid = json.reading<std::uint32_t>("uid");
  process.user = json.text("user");
  process.command = json.text("command");
  process.container = json.text("container");
  process.started_at_s = json.reading_time("started_at_s");
  if (json.maybe_flag("ending").value_or(false)) process.ending = true;
  if (!json.is_null("lease")) add_lease_of(process.pid, read_id(json, "lease"), report.facts);
  if (json.flag("assumed")) report.assumed.insert(process.pid);
  return process;
}

Device read_device(const JsonReader& json, HostReport& report) {
  Device device;
  read_readings(json, device);
  if (device.vendor.empty()) device.vendor = kUntoldVendor;
  // The fields by which devices differ.
  device.index = json.needed<unsigned>("index");
  if (!json.has("uuid")) json.mark("uuid", "is missing");
  device.uuid = json.text("uuid");
  if (const auto mig = json.maybe_object("mig")) device.mig = read_mig(*mig);
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
  json.needs("free");
  verdict.failed = json.word<Clause>("clause");
  // A clause that is missing is one that is not known.
  if (!verdict.failed && !json.flag("free")) verdict.failed = Clause::unknown;
  verdict.reason = json.text("reason");
  verdict.free_bytes = json.reading<std::uint64_t>("free_bytes");
  verdict.more_culprits = json.number<std::uint32_t>("more_culprits");
  json.each("culprits", [&](const JsonReader& each) { verdict.culprits.push_back(read_culprit(each)); });
  if (json.flag("free") != verdict.free()) json.mark("free", "says other than the clause");
  return verdict;
}

/// Nobody said that it is free.
Verdict not_judged(const std::string& uuid) {
  Verdict verdict;
  verdict.uuid = uuid;
  verdict.failed = Clause::unknown;
  verdict.reason = "its machine does not say whether it is free";
  return verdict;
}

/// The fields that a lease and a waiter have in common.
Ticket read_ticket(const JsonReader& json, TicketPhase phase) {
  Ticket ticket;
  json.needs("id");
  ticket.id = read_id(json, "id");
  ticket.phase = phase;
  ticket.uid = json.needed<std::uint32_t>("uid");
  ticket.user = json.text("user");
  ticket.taker.pid = json.number<std::uint32_t>("pid");
  ticket.kept = json.flag("kept");
  ticket.job.pid = json.number<std::uint32_t>("job_pid");
  ticket.slurm_job = json.number<std::uint32_t>("slurm_job");
  ticket.origin = json.text("asked_at");
  ticket.since_s = json.time("since_s");
  ticket.time_s = json.maybe<std::int64_t>("time_s");
  ticket.yield_s = json.maybe<std::int64_t>("yield_s");
  ticket.ending = json.flag("ending");
  ticket.count = json.maybe<unsigned>("count").value_or(1);
  ticket.shared = json.flag("shared");
  ticket.promise_bytes = json.number<std::uint64_t>("promise_bytes");
  ticket.command = json.text("command");
  ticket.note = json.text("note");
  ticket.request = json.text("request");
  if (phase == TicketPhase::granted) {
    ticket.told_end_s = json.maybe_time("until_s");
    json.needs("devices");
    ticket.devices = json.texts("devices");
    Names<std::string> uuids;
    for (const std::string& uuid : ticket.devices) uuids.take(uuid, json, "devices");
  } else {
    ticket.candidates = json.texts("candidates");
    ticket.joined_s = ticket.since_s;
  }
  return ticket;
}

bool is_ours(const JsonReader& json, std::string_view kind) {
  json.needs("kind");
  if (json.text("kind") != kind) json.mark("kind", fmt::format("must be \"{}\"", kind));
  const int version = json.needed<int>("version");
  if (version != kVersion)
    json.mark("version",
              fmt::format("is {}, and this Berth reads {}; let both be of one version", version, kVersion));
  return !json.has_fault();
}

void read_unlisted(const JsonReader& json, Ledger& ledger) {
  json.each("unlisted", [&](const JsonReader& each) {
    ledger.unlisted.push_back({each.number<std::uint32_t>("uid"), each.text("user"),
                               each.number<std::uint32_t>("leases"), each.number<std::uint32_t>("waiting"),
                               each.number<std::uint32_t>("odd_tickets")});
  });
}

void read_devices(const JsonReader& json, HostReport& report) {
  std::vector<Reading<std::int64_t>> idle_since;
  json.needs("devices");
  Names<std::string> uuids;
  json.each("devices", [&](const JsonReader& each) {
    const Device& device = report.facts.snapshot.devices.emplace_back(read_device(each, report));
    if (!device.uuid.empty()) uuids.take(device.uuid, each, "uuid");
    idle_since.push_back(each.reading_time("idle_since_s"));
    each.each("passed_over", [&](const JsonReader& one) {
      report.facts.passed_over_for[device.uuid].push_back(
          {one.number<std::uint32_t>("uid"), one.text("user"), one.time("until_s"), one.text("reason")});
    });
    const auto verdict = each.maybe_object("verdict");
    // Each has one but those that are split, which stand for nothing.
    if (verdict && is_split(device)) each.mark("verdict", "is of a GPU that is split");
    if (is_split(device)) return;
    report.verdicts.push_back(verdict ? read_verdict(*verdict, device.uuid) : not_judged(device.uuid));
  });
  const LeasesByDevice leases(report.ledger);
  for (std::size_t i = 0; i < idle_since.size(); ++i) {
    const Device& device = report.facts.snapshot.devices[i];
    if (idle_since[i]) report.idle.adopt(device, leases_holding(device, leases), *idle_since[i]);
  }
}

void read_listing(const JsonReader& json, HostReport& report) {
  if (!is_ours(json, "berth-list")) return;
  Snapshot& snapshot = report.facts.snapshot;
  json.needs("taken_at_s");
  const double taken_at_s = json.maybe_decimal("taken_at_s").value_or(-1);
  // Nanoseconds since the epoch are 64 bits until the year 2262.
  constexpr double kLatestLook = 9.2e9;
  if (!(taken_at_s >= 0 && taken_at_s < kLatestLook)) return json.mark("taken_at_s", "is no time");
  snapshot.taken_at_ns = std::llround(taken_at_s * 1000) * 1'000'000;
  snapshot.source = json.text("source");
  snapshot.driver_version = json.text("driver_version");
  snapshot.cuda_version = read_version(json, "cuda_version", kCuda);
  snapshot.stale_reason = json.maybe_text("stale_reason");
  snapshot.notes = json.texts("notes");
  // A Berth that does not tell it is one that knows no labels.
  if (!json.is_null("host")) report.facts.host = HostFacts{json.text("host"), json.texts("labels")};
  // Which devices the lease has is not told.
  if (json.flag("inside_lease")) report.facts.within.emplace();
  // Without this list it is not known who has what.
  json.needs("leases");
  Names<TicketId> ids;
  json.each("leases", [&](const JsonReader& each) {
    const Ticket& lease = report.ledger.tickets.emplace_back(read_ticket(each, TicketPhase::granted));
    ids.take(lease.id, each, "id");
  });
  json.each("odd_tickets", [&](const JsonReader& each) {
    report.ledger.odd.push_back({each.text("name"), each.number<std::uint32_t>("uid"), each.text("reason")});
  });
  read_unlisted(json, report.ledger);
  read_devices(json, report);
}

/// The tickets by their ids: a waiter's rival is found at once however many there are.
class TicketsById {
 public:
  explicit TicketsById(const Ledger& ledger) : ledger_(ledger) {
    for (std::size_t i = 0; i < ledger.tickets.size(); ++i) places_.emplace(ledger.tickets[i].id, i);
  }
  void take_last() { places_.emplace(ledger_.tickets.back().id, ledger_.tickets.size() - 1); }

  /// Without its lists, which nobody asks for here. A document only names it. One that is not known
  /// stands further ahead, unless somebody made the document up.
  Ticket called(TicketId id) const {
    Ticket ticket;
    ticket.id = id;
    const auto found = places_.find(id);
    if (found == places_.end()) return ticket;
    const Ticket& known = ledger_.tickets[found->second];
    ticket.phase = known.phase;
    ticket.uid = known.uid;
    ticket.taker = known.taker;
    ticket.since_s = known.since_s;
    ticket.user = shortened(known.user, kMostOfRival);
    ticket.command = shortened(known.command, kMostOfRival);
    return ticket;
  }

 private:
  static constexpr std::size_t kMostOfRival = 256;  // a line a waiter shows it
  const Ledger& ledger_;
  std::map<TicketId, std::size_t> places_;
};

void read_queue(const JsonReader& json, HostReport& report) {
  if (!is_ours(json, "berth-queue")) return;
  json.needs("waiters");
  Names<TicketId> ids;
  TicketsById known(report.ledger);
  json.each("waiters", [&](const JsonReader& each) {
    Standing waiter;
    waiter.ticket = read_ticket(each, TicketPhase::waiting);
    ids.take(waiter.ticket.id, each, "id");
    waiter.position = each.maybe<std::size_t>("position").value_or(1);
    if (!each.is_null("behind")) waiter.behind = known.called(read_id(each, "behind"));
    waiter.starts_at_s = each.maybe<std::int64_t>("starts_at_s");
    waiter.starts_on = each.texts("starts_on");
    waiter.fills_gap_until_s = each.maybe<std::int64_t>("fills_gap_until_s");
    waiter.stopped = each.flag("stopped");
    waiter.ticket.held_back = each.flag("held_back");
    waiter.reason = each.text("reason");
    report.ledger.tickets.push_back(waiter.ticket);
    known.take_last();
    report.waiters.push_back(std::move(waiter));
  });
  read_unlisted(json, report.ledger);
}

HostReport read_both(const JsonReader& listing, const JsonReader& queue) {
  HostReport report;
  read_listing(listing, report);
  read_queue(queue, report);
  return report;
}

ReportedHost read_host(const JsonReader& json) {
  ReportedHost host;
  json.needs("name");
  host.name = json.text("name");
  host.url = json.maybe_text("url");
  host.error = json.text("error");
  host.seen_s = json.maybe_time("seen_s");
  json.needs("state");
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

Result<Json> parse(std::string_view document, DocumentBounds bounds = {}) {
  const DocumentShape shape = shape_of(document);
  if (shape.levels > kMostLevels)
    return fail(ErrorCode::failure, "it is no document of Berth's: it is nested too deep");
  if (shape.objects > bounds.objects || shape.values > bounds.values)
    return fail(ErrorCode::failure, "it tells of more than {} things, or of {} values, and was not read",
                bounds.objects, bounds.values);
  Json json = Json::parse(document, nullptr, false);
  if (json.is_discarded()) return fail(ErrorCode::failure, "it is not JSON");
  return json;
}

}  // namespace

Result<ReportedHosts> read_hosts(std::string_view document, DocumentBounds bounds) {
  BERTH_LET(const auto parsed, parse(document, bounds));
  std::string fault;
  const JsonReader json(parsed, fault, "document");
  ReportedHosts told;
  if (is_ours(json, "berth-hosts")) {
    told.is_hub = json.flag("hub");
    json.needs("hosts");
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
  BERTH_LET(auto parsed, parse(document));
  std::string fault;
  if (!is_ours(JsonReader(parsed, fault, "document"), kind))
    return fail(ErrorCode::failure, "it is no document of Berth's: " + fault);
  return dumped(std::move(parsed), layout);
}

}  // namespace berth::view
