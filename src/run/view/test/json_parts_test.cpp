#include "berth/view/json.h"

#include <doctest/doctest.h>

#include "berth/job/job.h"
#include "berth/verdict/test/machine.h"
#include "berth/view/listing.h"

namespace berth::view::json_parts_test {
namespace {

TEST_CASE("a lease is written with all that is known of it") {
  Ticket lease = test::lease(0x1234, "GPU-a");
  lease.uid = 1000;
  lease.user = "ada";
  lease.taker.pid = 7;
  lease.kept = true;
  lease.job.pid = 8;
  lease.slurm_job = 12;
  lease.origin = "desk1:7";
  lease.since_s = 1'795'265'000;
  lease.time_s = 7200;
  lease.yield_s = 30;
  lease.ending = true;
  lease.granted_boot_s = 500;
  lease.count = 3;
  lease.shared = true;
  lease.promise_bytes = 4096;
  lease.command = "train.py";
  lease.note = "sweep";
  lease.request = "1 whole GPU";
  CHECK(ticket_json(lease, 1'795'264'510) == Json::parse(R"({
    "id": "0000000000001234", "phase": "granted", "uid": 1000, "user": "ada", "pid": 7, "kept": true,
    "job_pid": 8, "slurm_job": 12, "asked_at": "desk1:7", "since_s": 1795265000, "time_s": 7200, "yield_s": 30, "ending": true,
    "until_s": 1795272210, "count": 3, "shared": true, "promise_bytes": 4096,
    "devices": ["GPU-a"], "command": "train.py", "note": "sweep", "job": null,
    "request": "1 whole GPU"})"));
  CHECK(ticket_json(lease, 0)["until_s"] == 1'795'272'200);  // by the wall clock at the grant
  lease.phase = TicketPhase::waiting;
  lease.granted_boot_s.reset();
  CHECK(ticket_json(lease, 0)["phase"] == "waiting");
  CHECK(ticket_json(lease, 0)["until_s"].is_null());
}

TEST_CASE("a ticket in JSON says of which job its task is") {
  Ticket ticket;
  ticket.note = to_text(TaskNote{.task = {12, 7}, .name = "sweep", .note = "for the paper"});
  CHECK(ticket_json(ticket, 0)["job"] ==
        Json::parse(R"({"id": "12.7", "number": 12, "index": 7, "name": "sweep", "note": "for the paper"})"));
  ticket.note = "job 12";
  CHECK(ticket_json(ticket, 0)["job"] ==
        Json::parse(R"({"id": "12", "number": 12, "index": null, "name": null, "note": null})"));
  ticket.note = "job hunt";
  CHECK(ticket_json(ticket, 0)["job"].is_null());
}

TEST_CASE("a device is named in each document in one way, and a verdict names its culprits") {
  Facts facts = test::machine(1);
  Device& device = facts.snapshot.devices[0];
  device.name = "H100";
  CHECK(identity_json(device) ==
        Json({{"index", 0}, {"label", "0"}, {"uuid", device.uuid}, {"name", "H100"}}));
  Verdict verdict;
  verdict.failed = Clause::not_leased;
  verdict.reason = "leased";
  verdict.culprits = {{"ada", 7, "train.py", 1'795'265'000, TicketId{0x1234}, "sweep"}};
  CHECK(verdict_json(verdict)["culprits"] == Json::parse(R"([{
    "user": "ada", "pid": 7, "command": "train.py", "since_s": 1795265000, "lease": "0000000000001234",
    "note": "sweep"}])"));
}

TEST_CASE("a process of a lease names it, and one of none says so") {
  Facts facts = test::machine(1);
  Device& device = facts.snapshot.devices[0];
  test::add_process(device, test::process(77, test::kGiB));
  test::add_process(device, test::process(78, test::kGiB));
  facts.process_leases.emplace(77, TicketId{0x1234});
  Ledger ledger;
  ledger.tickets = {test::lease(0x1234, device.uuid)};
  const std::vector<Verdict> verdicts;
  const std::set<std::uint32_t> assumed;
  const IdleTimes idle;
  const LeasesByDevice leases(ledger);
  const Json told = device_json(device, nullptr, {facts, ledger, verdicts, assumed, idle}, leases);
  CHECK(told["processes"][0]["lease"] == "0000000000001234");
  CHECK(told["processes"][1]["lease"].is_null());
}

TEST_CASE("a leased device is told to be idle, and since when") {
  const Facts facts = test::machine(2);
  Ledger ledger;
  ledger.tickets = {test::lease(0x1234, test::uuid_of(0))};
  IdleTimes idle;
  idle.adopt(facts.snapshot.devices[0], {&ledger.tickets[0]}, 1'795'265'100);
  const std::vector<Verdict> verdicts;
  const std::set<std::uint32_t> assumed;
  const LeasesByDevice leases(ledger);
  const Listing listing{facts, ledger, verdicts, assumed, idle};
  const Json leased = device_json(facts.snapshot.devices[0], nullptr, listing, leases);
  CHECK(leased["idle"] == true);
  CHECK(leased["idle_since_s"] == 1'795'265'100);
  CHECK(leased["leases"] == Json::array({"0000000000001234"}));
  const Json free = device_json(facts.snapshot.devices[1], nullptr, listing, leases);
  CHECK(free["idle"].is_null());
  CHECK(free["idle_since_s"].is_null());
}

}  // namespace
}  // namespace berth::view::json_parts_test
