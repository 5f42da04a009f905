#include "berth/view/hosts_reader.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/device/device_readings.h"
#include "berth/verdict/test/machine.h"
#include "berth/view/answers_json.h"
#include "berth/view/json.h"

namespace berth::view::hosts_reader_test {
namespace {

/// A machine with a bit of everything that a listing can say.
HostReport busy_machine() {
  HostReport report;
  report.facts = test::machine(4);
  auto& devices = report.facts.snapshot.devices;
  test::split(report.facts.snapshot, 3, 2);
  Snapshot& snapshot = report.facts.snapshot;
  snapshot.taken_at_ns = 1'795'265'321'250'000'000;
  snapshot.source = "nvml";
  snapshot.driver_version = "550.54";
  snapshot.cuda_version = 12'040;
  snapshot.notes = {"a note"};
  report.facts.host = HostFacts{"node01", {"nvlink", "room:b12"}};
  snapshot.stale_reason = "the driver is not responding";
  devices[0].health = {false, true, 3, true, "drain_and_reset", 79};
  devices[0].persistence = true;
  devices[0].display_active = false;
  devices[0].sm_clock_mhz = 1410;
  devices[0].memory_clock_mhz = 1593;
  devices[0].fan_percent = 31;
  devices[0].performance_state = 2;
  devices[0].throttle_reasons = 1ULL << 40;
  devices[0].pcie_generation = 4;
  devices[0].pcie_width = 16;
  devices[2].memory.kind = MemoryKind::unified;
  Process process = test::process(77, test::kGiB);
  process.started_at_s = 1'795'265'000;
  process.uid = 1000;
  process.container = "c0ffee";
  process.kind = ProcessKind::compute_and_graphics;
  test::add_process(devices[0], process);
  devices[1].state = DeviceState::lost;
  devices[1].state_reason = "GPU is lost";
  devices[1].processes.reset();
  devices[2].compute_mode.reset();
  Ticket lease = test::lease(0x1234, devices[0].uuid);
  lease.since_s = 1'795'265'000;
  lease.job.pid = 5;
  lease.slurm_job = 12;
  lease.origin = "desk1:7";
  lease.time_s = 7200;
  lease.granted_boot_s = 40;  // the wall clock was set since, so that its end is not since_s + time_s
  report.facts.booted_at_s = 1'795'265'060;
  lease.yield_s = 30;
  lease.ending = true;
  lease.count = 2;
  lease.request = "1 whole GPU";
  lease.command = "train.py \"\xe2\x9c\x93\"";
  report.ledger.tickets = {lease, test::shared_lease(0x1235, devices[2].uuid, test::kGiB)};
  report.ledger.odd = {{"name", 1000, "reason"}};
  report.facts.process_leases.emplace(77, lease.id);
  report.assumed = {77};
  report.idle.adopt(devices[2], leases_holding(devices[2], report.ledger), 1'795'265'100);
  Standing waiter{.ticket = test::lease(0x2000, ""), .position = 2, .behind = lease, .reason = "so"};
  waiter.ticket.phase = TicketPhase::waiting;
  waiter.ticket.since_s = 1'795'265'300;
  waiter.stopped = true;
  waiter.ticket.held_back = true;
  waiter.starts_at_s = 1'795'272'200;
  waiter.fills_gap_until_s = 1'795'279'400;
  waiter.ticket.devices.clear();
  report.waiters = {waiter};
  report.ledger.tickets.push_back(waiter.ticket);
  report.verdicts = judge(Request(), report.ledger, report.facts).value();
  return report;
}

std::string listing_of(const HostReport& report) {
  return listing_json({report.facts, report.ledger, report.verdicts, report.assumed, report.idle},
                      Layout::line);
}

std::string document_of(const Host& host) {
  const std::string entry = host_json(host);
  const std::string_view entries[]{entry};
  return hosts_json({.number = 7, .time_s = 9, .every_s = 1}, entries,
                    totals_of({std::make_shared<const Host>(host)}));
}

std::string replaced(std::string text, std::string_view old, std::string_view fresh) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), fresh);
}

std::string fault_of(const std::string& document) {
  const auto told = read_hosts(document);
  return told ? "" : told.error().message;
}

std::string fault_of(const std::string& listing, const std::string& queue) {
  const auto report = read_report(listing, queue);
  return report ? "" : report.error().message;
}

TEST_CASE("what was read of a machine is written as it was") {
  const HostReport report = busy_machine();
  const std::string listing = listing_of(report);
  const std::string queue = queue_json(report.waiters, report.ledger.unlisted, Layout::line);
  const auto read = read_report(listing, queue);
  REQUIRE(read);
  CHECK(listing_of(*read) == listing);
  CHECK(queue_json(read->waiters, read->ledger.unlisted, Layout::line) == queue);
  CHECK(read->verdicts == report.verdicts);
  CHECK(read->waiters.front().stopped);
  CHECK(read->waiters.front().ticket.held_back);
  CHECK(read->waiters.front().starts_at_s == 1'795'272'200);
  CHECK(read->waiters.front().fills_gap_until_s == 1'795'279'400);
  CHECK(read->ledger.tickets.front().time_s == 7200);
  CHECK(read->ledger.tickets.front().job.pid == 5);
  CHECK(read->ledger.tickets.front().slurm_job == 12);
  CHECK(read->ledger.tickets.front().origin == "desk1:7");
  CHECK(read->waiters.front().ticket.joined_s == 1'795'265'300);
  CHECK(read->ledger.tickets.front().count == 2);
  CHECK(read->ledger.tickets.front().yield_s == 30);
  CHECK(read->ledger.tickets.front().ending);
  CHECK(read->facts.host == report.facts.host);
  CHECK(read->ledger.tickets.front().request == "1 whole GPU");
  CHECK(listing.contains("\"label\":\"3:1\""));
  CHECK(listing.contains("\"leases\":[\"0000000000001234\"]"));
  CHECK(read->facts.snapshot.devices == report.facts.snapshot.devices);
}

TEST_CASE("what is no report says why") {
  const HostReport report = busy_machine();
  const std::string listing = listing_of(report);
  const std::string queue = queue_json(report.waiters, report.ledger.unlisted, Layout::line);
  CHECK(fault_of(queue, queue).contains("listing.kind must be \"berth-list\""));
  CHECK(fault_of(listing, listing).contains("queue.kind must be \"berth-queue\""));
  CHECK(fault_of(replaced(listing, "\"taken_at_s\":1795265321.25", "\"taken_at_s\":null"), queue)
            .contains("listing.taken_at_s is missing"));
  CHECK(fault_of(replaced(listing, "\"taken_at_s\":1795265321.25", "\"taken_at_s\":\"now\""), queue)
            .contains("listing.taken_at_s must be a number"));
}

TEST_CASE("another document of ours is passed on, and what is none is not") {
  const std::string text = R"({"kind":"berth-history","version":1,"more":[1.5]})";
  CHECK(Json::parse(rewritten(text, "berth-history", Layout::line).value()) == Json::parse(text));
  CHECK(rewritten(text, "berth-usage", Layout::line).error().message.contains("document.kind must be"));
}

TEST_CASE("a host that answers and one that does not are read as they were written") {
  Host host{"node01", "http://node01:8420", "", 1'795'265'321,
            std::make_shared<const HostReport>(busy_machine())};
  for (const std::string error : {"", "nobody listens there"}) {
    host.error = error;
    const auto told = read_hosts(document_of(host));
    REQUIRE(told);
    CHECK(!told->is_hub);
    REQUIRE(told->hosts.size() == 1);
    const ReportedHost& read = told->hosts.front();
    CHECK(host_json({read.name, read.url, read.error, read.seen_s, read.report}) == host_json(host));
  }
}

TEST_CASE("keys of a later version are left out, and what is missing or wrong is named") {
  const Host host{"node01", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  const std::string document = document_of(host);
  CHECK(fault_of(replaced(document, "\"number\"", "\"new\":[1,{}],\"number\"")).empty());
  CHECK(fault_of("<html>").find("it is not JSON") != std::string::npos);
  CHECK(fault_of(document.substr(0, document.size() / 2)).find("it is not JSON") != std::string::npos);
  CHECK(fault_of("[]").find("document must be an object") != std::string::npos);
  CHECK(fault_of("{}").find("document.kind is missing") != std::string::npos);
  CHECK(fault_of(std::string(100'000, '[')).find("nested too deep") != std::string::npos);
  CHECK(fault_of(replaced(document, "\"version\":1", "\"version\":2")).find("is 2, and this Berth reads 1") !=
        std::string::npos);
  CHECK(fault_of(replaced(document, "\"pid\":77", "\"pid\":-77"))
            .find("document.hosts.snapshot.devices.processes.pid must be a whole number") !=
        std::string::npos);
  CHECK(fault_of(replaced(document, "\"pid\":77", "\"pid\":1e300")).find("pid") != std::string::npos);
  CHECK(fault_of(replaced(document, "\"verdict\":{\"free\":false", "\"verdict\":{\"free\":true"))
            .find("free says other than the clause") != std::string::npos);
  for (const std::string none : {"-1", "17952653210.25", "99999999999"}) {
    CHECK(fault_of(replaced(document, "\"taken_at_s\":1795265321.25", "\"taken_at_s\":" + none))
              .find("taken_at_s is no time") != std::string::npos);
  }
}

TEST_CASE("a host without its name, its state or its reason is no host") {
  Host host{"node01", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  const std::string document = document_of(host);
  CHECK(
      fault_of(replaced(document, "\"name\":\"node01\"", "\"name\":null")).contains("hosts.name is missing"));
  CHECK(
      fault_of(replaced(document, "\"state\":\"up\"", "\"state\":null")).contains("hosts.state is missing"));
  CHECK(fault_of(replaced(document, "\"error\":null", "\"error\":\"none\""))
            .contains("hosts.error and state must say the same"));
  CHECK(fault_of(R"({"kind":"berth-hosts","version":1})").contains("document.hosts is missing"));
  CHECK(read_hosts(replaced(document, "\"hub\":false", "\"hub\":true"))->is_hub);
}

/// A document of one host, as it is changed by `change`.
template <class Change>
std::string changed_document(Change change) {
  const Host host{"node01", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  Json document = Json::parse(document_of(host));
  change(document["hosts"][0]["snapshot"], document["hosts"][0]["queue"]);
  return document.dump();
}

const HostReport& report_in(const ReportedHosts& told) {
  REQUIRE(told.hosts.size() == 1);
  REQUIRE(told.hosts[0].report);
  return *told.hosts[0].report;
}

/// Every value of a document by its place, "/devices/0/memory/kind", with what is the same of each
/// in a list once.
void places_in(const Json& json, const std::string& place,
               std::map<std::string, std::vector<std::string>>& found) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      std::string kind = place + "/" + key;
      std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
      found[kind].push_back(place + "/" + key);
      places_in(value, place + "/" + key, found);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) places_in(json[i], place + "/" + std::to_string(i), found);
  }
}

/// Without these nobody can say what the rest is about.
const std::set<std::string> kNeeded{"/kind",
                                    "/version",
                                    "/taken_at_s",
                                    "/devices",
                                    "/devices//index",
                                    "/devices//uuid",
                                    "/devices//mig/parent_uuid",
                                    "/devices//mig/slot",
                                    "/devices//processes//pid",
                                    "/devices//verdict/free",
                                    "/leases",
                                    "/leases//id",
                                    "/leases//uid",
                                    "/leases//devices",
                                    "/waiters",
                                    "/waiters//id",
                                    "/waiters//uid"};

TEST_CASE("a document of the previous version lacks any key but those without which it makes no sense") {
  std::map<std::string, std::vector<std::string>> places;
  (void)changed_document([&](Json& listing, Json& queue) {
    places_in(listing, "", places);
    places_in(queue, "", places);
  });
  CHECK(places.size() > 80);
  for (const auto& [kind, all] : places) {
    CAPTURE(kind);
    const std::string document = changed_document([&all](Json& listing, Json& queue) {
      for (Json* each : {&listing, &queue}) {
        for (const std::string& place : all) {
          const auto pointer = Json::json_pointer(place);
          if (each->contains(pointer)) each->at(pointer.parent_pointer()).erase(pointer.back());
        }
      }
    });
    const auto told = read_hosts(document);
    CHECK(told.has_value() != kNeeded.contains(kind));
    // Nothing becomes free by it.
    if (told) {
      const HostReport before = busy_machine();
      const HostReport& after = report_in(*told);
      REQUIRE(after.verdicts.size() == before.verdicts.size() + (kind == "/devices//mig_enabled" ? 1 : 0));
      const auto free_of = [](const HostReport& report) {
        return std::ranges::count_if(report.verdicts, &Verdict::free);
      };
      CHECK(free_of(after) <= free_of(before));
      if (kind == "/devices//verdict") {
        CHECK(free_of(after) == 0);
        CHECK(after.verdicts[0].uuid == test::uuid_of(0));
        CHECK(after.verdicts[0].reason == "its machine does not say whether it is free");
      }
      if (kind == "/devices//state") CHECK(after.facts.snapshot.devices[0].state == DeviceState::failed);
    }
  }
}

TEST_CASE("a reading that is null, of a wrong type or huge is absent, and takes nothing else away") {
  for (const Json& value : {Json(nullptr), Json("text"), Json(-1), Json(1e300), Json(18446744073709551615ULL),
                            Json(0.5), Json::array({1}), Json{{"a", 1}}, Json(true)}) {
    CAPTURE(value.dump());
    const auto told = read_hosts(changed_document([&value](Json& listing, Json&) {
      for (const DeviceReading& row : device_readings()) {
        if (row.name == "index" || row.name == "uuid" || row.name == "mig_enabled") continue;
        Json& device = listing["devices"][0];
        const std::string part(part_of(row));
        (part.empty() ? device : device[part])[std::string(row.name)] = value;
      }
      listing["devices"][0]["processes"][0]["used_bytes"] = value;
    }));
    REQUIRE_MESSAGE(told, told.error().message);
    const Device& device = report_in(*told).facts.snapshot.devices[0];
    CHECK(device.uuid == test::uuid_of(0));
    CHECK(device.state == DeviceState::failed);
    CHECK_FALSE(device.compute_mode);
    CHECK_FALSE(device.compute_capability);
    CHECK(device.memory.kind == MemoryKind::dedicated);
    CHECK(device.persistence.has_value() == value.is_boolean());
    CHECK(device.health.row_remap_failed.has_value() == value.is_boolean());
    CHECK((device.temperature_c == -1) == (value.dump() == "-1"));
    CHECK((device.temperature_c.has_value()) == (value.dump() == "-1"));
    CHECK(device.memory.total_bytes.has_value() == (value.dump() == "18446744073709551615"));
    CHECK_FALSE(device.power_mw);
    CHECK_FALSE(device.pcie_width);
    CHECK(device.processes->at(0).used_bytes.has_value() == (value.dump() == "18446744073709551615"));
    CHECK(device.name == (value.is_string() ? "text" : ""));
    CHECK(report_in(*told).facts.snapshot.devices[2].power_mw == 55'000u);
  }
  for (const Json& part : {Json(nullptr), Json(7), Json::array()}) {
    const auto told = read_hosts(changed_document([&part](Json& listing, Json&) {
      listing["devices"][0]["memory"] = part;
      listing["devices"][0]["health"] = part;
    }));
    REQUIRE(told);
    CHECK(report_in(*told).facts.snapshot.devices[0].memory == Memory{});
    CHECK(report_in(*told).facts.snapshot.devices[0].health == Health{});
  }
}

TEST_CASE("words of the next version are never taken for ok or for free") {
  const auto told = read_hosts(changed_document([](Json& listing, Json&) {
    listing["spin"] = "up";
    Json& device = listing["devices"][0];
    device["spin"] = {{"up", {1, 2}}};
    device["memory"]["spin"] = 3;
    device["memory"]["kind"] = "holographic";
    device["state"] = "enchanted";
    device["compute_mode"] = "psychic";
    device["processes"][0]["kind"] = "dreaming";
    device["verdict"]["clause"] = "no_ghost";
    device["verdict"]["reason"] = "a ghost is on it";
  }));
  REQUIRE(told);
  const HostReport& report = report_in(*told);
  const Device& device = report.facts.snapshot.devices[0];
  CHECK(device.state == DeviceState::failed);
  CHECK(device.memory.kind == MemoryKind::dedicated);
  CHECK_FALSE(device.compute_mode);
  CHECK(device.processes->at(0).kind == ProcessKind::compute);
  CHECK(report.verdicts[0].failed == Clause::unknown);
  CHECK(report.verdicts[0].reason == "a ghost is on it");
  const std::string again = listing_of(report);
  CHECK(again.contains("\"clause\":\"unknown\",\"reason\":\"a ghost is on it\""));
  // What is called free for a reason is no document of ours.
  CHECK(fault_of(changed_document([](Json& listing, Json&) {
          listing["devices"][0]["verdict"]["free"] = true;
          listing["devices"][0]["verdict"]["clause"] = "no_ghost";
        })).contains("free says other than the clause"));
  CHECK(fault_of(changed_document([](Json& listing, Json&) {
          listing["devices"][3]["verdict"] = listing["devices"][0]["verdict"];
        })).contains("verdict is of a GPU that is split"));
}

TEST_CASE("what a document only names, or leaves out, is read as what it can mean") {
  const auto told = read_hosts(changed_document([](Json& listing, Json& queue) {
    listing["inside_lease"] = true;
    listing["devices"][0].erase("vendor");
    queue["waiters"][0]["behind"] = "0000000000009999";
  }));
  REQUIRE(told);
  const HostReport& report = report_in(*told);
  CHECK(report.facts.within.has_value());
  CHECK(report.facts.snapshot.devices[0].vendor == kUntoldVendor);
  CHECK(report.waiters.at(0).behind->id == TicketId{0x9999});
}

TEST_CASE("what a device is known by must be what it is") {
  for (const auto& [place, value] : {std::pair<const char*, Json>{"/devices/0/index", "one"},
                                     {"/devices/0/index", -1},
                                     {"/devices/0/index", nullptr},
                                     {"/devices/0/uuid", 7},
                                     {"/devices/0/processes/0/pid", nullptr},
                                     {"/devices/0/processes/0/pid", 4294967296},
                                     {"/devices", nullptr},
                                     {"/devices", "none"},
                                     {"/devices/0/processes", "none"},
                                     {"/devices/0", 7},
                                     {"/leases", nullptr},
                                     {"/leases/0/id", "7"},
                                     {"/leases/0/kept", "yes"},
                                     {"/leases/0/since_s", 1e18}}) {
    CAPTURE(place);
    CHECK_FALSE(fault_of(changed_document([&](Json& listing, Json&) {
                  listing[Json::json_pointer(place)] = value;
                })).empty());
  }
}

TEST_CASE("what others are told apart by comes once on a host, but for what is not known") {
  for (const auto& [list, key] : {std::pair<const char*, const char*>{"/devices", "devices.uuid"},
                                  {"/leases", "leases.id"},
                                  {"/waiters", "waiters.id"}}) {
    CAPTURE(list);
    CHECK(fault_of(changed_document([&](Json& listing, Json& queue) {
            Json& entries = (listing.contains(list + 1) ? listing : queue)[list + 1];
            entries.push_back(Json(entries[0]));
          })).ends_with(std::string(key) + " comes twice"));
  }
  CHECK(fault_of(changed_document([](Json& listing, Json&) {
          Json& devices = listing["leases"][0]["devices"];
          devices.push_back(Json(devices[0]));
        })).ends_with("leases.devices comes twice"));
  // Boards that are lost tell no UUID.
  CHECK(fault_of(changed_document([](Json& listing, Json&) {
          listing["devices"][0]["uuid"] = nullptr;
          listing["devices"][1]["uuid"] = nullptr;
        })).empty());
}

TEST_CASE("of an agent no more things are parsed than a machine has") {
  std::string document = R"({"kind":"berth-hosts","version":1,"hosts":[)";
  for (int i = 0; i < 200; ++i) document += "{},";
  document += "{}]}";
  const DocumentBounds few_objects{.objects = 200};
  REQUIRE(!read_hosts(document, few_objects));
  CHECK(read_hosts(document, few_objects).error().message.starts_with("it tells of more than 200 things"));
  CHECK(read_hosts(document, {.values = 200}).error().message.starts_with("it tells of more than"));
  // Brackets in texts are none.
  CHECK(shape_of(R"({"a":"[[{\"{","b":[]})").objects == 2);
  CHECK(shape_of("[[],[[]]]").levels == 3);
}

TEST_CASE("a waiter names whom it stands behind, and has no copy of what that asks for") {
  const auto told = read_hosts(changed_document([](Json& listing, Json& queue) {
    listing["leases"][0]["command"] = std::string(4000, 'x');
    queue["waiters"][0]["behind"] = listing["leases"][0]["id"];
  }));
  REQUIRE(told);
  const auto& behind = report_in(*told).waiters.front().behind;
  REQUIRE(behind);
  CHECK(behind->id.value == 0x1234);
  CHECK(behind->devices.empty());
  CHECK(behind->command.size() < 300);
}

TEST_CASE("what is told of whom a waiter stands behind is what is told of that lease or waiter itself") {
  HostReport report = busy_machine();
  Ticket& lease = report.ledger.tickets.front();
  lease.uid = 1001;
  lease.user = "ada";
  lease.taker.pid = 4711;
  Standing first = report.waiters.front();
  first.behind = lease;
  first.ticket.uid = 1002;
  first.ticket.user = "bob";
  first.ticket.taker.pid = 4712;
  first.ticket.command = "tune.py";
  Standing second = first;
  second.ticket.id = TicketId{0x2001};
  second.behind = first.ticket;
  report.waiters = {first, second};
  const auto read =
      read_report(listing_of(report), queue_json(report.waiters, report.ledger.unlisted, Layout::line));
  REQUIRE(read);
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    REQUIRE(read->waiters.at(i).behind);
    const Ticket& told = *read->waiters.at(i).behind;
    const Ticket& itself = *report.waiters.at(i).behind;
    CHECK(told.id == itself.id);
    CHECK(told.phase == itself.phase);
    CHECK(told.uid == itself.uid);
    CHECK(told.user == itself.user);
    CHECK(told.taker.pid == itself.taker.pid);
    CHECK(told.since_s == itself.since_s);
    CHECK(told.command == itself.command);
  }
}

TEST_CASE("no cut or changed document is more than an error") {
  const Host host{"node01", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  const std::string document = document_of(host);
  // Without what follows the last bracket it is whole.
  for (std::size_t i = 0; i <= document.rfind('}'); i += 31) {
    CHECK(!read_hosts(std::string_view(document).substr(0, i)));
    for (const char c : {'9', '"', '{', '\\', '\xff'}) {
      std::string changed = document;
      changed[i] = c;
      if (const auto told = read_hosts(changed)) {
        for (const ReportedHost& each : told->hosts)
          CHECK(!host_json({each.name, each.url, each.error, each.seen_s, each.report}).empty());
      }
    }
  }
}

TEST_CASE("long texts are cut between two characters") {
  HostReport report = busy_machine();
  std::string note;
  for (int i = 0; i < 3000; ++i) note += "é";
  report.ledger.tickets[0].note = "x" + note;
  const auto read =
      read_report(listing_of(report), queue_json(report.waiters, report.ledger.unlisted, Layout::line));
  REQUIRE(read);
  CHECK(read->ledger.tickets[0].note.size() == 4095);
}

TEST_CASE("how an entry became another is a JSON Patch, where that is shorter") {
  Host host{"node", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  const std::string before = host_json(host);
  HostReport report = busy_machine();
  report.facts.snapshot.devices[0].temperature_c = 71;
  test::add_process(report.facts.snapshot.devices[0], test::process(78, test::kGiB));
  report.ledger.tickets.pop_back();
  host.report = std::make_shared<const HostReport>(std::move(report));
  const std::string after = host_json(host);

  const auto change = nlohmann::json::parse(host_change_json(before, after));
  CHECK(change.at("name") == "node");
  CHECK(nlohmann::json::parse(before).patch(change.at("patch")) == nlohmann::json::parse(after));
  CHECK(nlohmann::json::parse(host_change_json(before, before)).at("patch").empty());

  host.report = nullptr;
  CHECK(host_change_json(before, host_json(host)).empty());
  CHECK(host_change_json(before, "").empty());
  CHECK(host_change_json("no document", after).empty());
}

}  // namespace
}  // namespace berth::view::hosts_reader_test
