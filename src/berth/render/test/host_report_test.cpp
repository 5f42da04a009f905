#include "berth/render/host_report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "berth/core/test/machine.h"
#include "berth/render/hosts_json.h"
#include "berth/render/json.h"

namespace berth::render {
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
  snapshot.stale_reason = "the driver is not responding";
  devices[0].health = {false, true, 3, std::nullopt};
  Process process = test::process(77, test::kGiB);
  process.started_at_s = 1'795'265'000;
  process.uid = 1000;
  process.container = "c0ffee";
  test::add_process(devices[0], process);
  devices[1].state = DeviceState::lost;
  devices[1].state_reason = "GPU is lost";
  devices[1].processes.reset();
  devices[2].compute_mode.reset();
  Ticket lease = test::lease(0x1234, devices[0].uuid);
  lease.since_s = 1'795'265'000;
  lease.command = "train.py \"\xe2\x9c\x93\"";
  report.ledger.tickets = {lease, test::shared_lease(0x1235, devices[2].uuid, test::kGiB)};
  report.ledger.odd = {{"name", 1000, "reason"}};
  report.facts.process_leases[77] = lease.id;
  report.assumed = {77};
  report.idle.adopt(devices[2], report.ledger, 1'795'265'100);
  ToldWaiter waiter{.ticket = test::lease(0x2000, ""), .position = 2, .behind = lease.id, .reason = "so"};
  waiter.ticket.phase = TicketPhase::waiting;
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

TEST_CASE("what was read of a machine is written as it was") {
  const HostReport report = busy_machine();
  const std::string listing = listing_of(report);
  const std::string queue = queue_json(report.waiters, Layout::line);
  const auto read = read_report(listing, queue);
  REQUIRE(read);
  CHECK(listing_of(*read) == listing);
  CHECK(queue_json(read->waiters, Layout::line) == queue);
  CHECK(read->verdicts == report.verdicts);
  CHECK(read->facts.snapshot.devices == report.facts.snapshot.devices);
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
    const ToldHost& read = told->hosts.front();
    CHECK(host_json({read.name, read.url, read.error, read.seen_s, read.report}) == host_json(host));
  }
}

TEST_CASE("keys of a later version are left out, and what is missing or wrong is named") {
  const Host host{"node01", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  const std::string document = document_of(host);
  CHECK(fault_of(replaced(document, "\"number\"", "\"new\":[1,{}],\"number\"")).empty());
  CHECK(fault_of("<html>").find("it is no JSON") != std::string::npos);
  CHECK(fault_of(document.substr(0, document.size() / 2)).find("it is no JSON") != std::string::npos);
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
  CHECK(fault_of(replaced(document, "\"taken_at_s\":1795265321.25", "\"taken_at_s\":-1"))
            .find("taken_at_s is no time") != std::string::npos);
}

TEST_CASE("no cut or changed document is more than an error") {
  const Host host{"node01", std::nullopt, "", 1, std::make_shared<const HostReport>(busy_machine())};
  const std::string document = document_of(host);
  for (std::size_t i = 0; i < document.size(); i += 7) {
    CHECK(!read_hosts(std::string_view(document).substr(0, i)));
    for (const char c : {'9', '"', '{', '\\', '\xff'}) {
      std::string changed = document;
      changed[i] = c;
      if (const auto told = read_hosts(changed)) {
        for (const ToldHost& each : told->hosts)
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
  const auto read = read_report(listing_of(report), queue_json(report.waiters, Layout::line));
  REQUIRE(read);
  CHECK(read->ledger.tickets[0].note.size() == 4095);
}

}  // namespace
}  // namespace berth::render
