#include "berth/verdict/verdict.h"

#include <doctest/doctest.h>

#include <utility>

#include "berth/verdict/test/machine.h"

namespace berth::compliance_test {
namespace {

using namespace test;

constexpr std::uint32_t kOwn = 50;
constexpr std::uint32_t kOther = 60;
constexpr std::uint32_t kNameless = 70;

Process seen(std::uint32_t pid, ProcessKind kind = ProcessKind::compute) {
  Process process = test::process(pid, kGiB, kind);
  if (pid != kNameless) process.uid = 1001;
  return process;
}

TEST_CASE("a job is judged by where it computes") {
  struct Row {
    std::string why;
    Compliance compliance;
    void (*arrange)(std::vector<Device>&);
  };
  // The lease has the GPUs 0 and 1 of 4.
  for (const Row& row : {
           Row{"nothing of it anywhere", Compliance::idle, [](auto&) {}},
           Row{"on one of its own", Compliance::keeps, [](auto& d) { add_process(d[1], seen(kOwn)); }},
           Row{"on both of its own", Compliance::keeps,
               [](auto& d) {
                 add_process(d[0], seen(kOwn));
                 add_process(d[1], seen(kOwn));
               }},
           Row{"on one that it did not lease", Compliance::strays,
               [](auto& d) { add_process(d[2], seen(kOwn)); }},
           Row{"on its own and on another", Compliance::strays,
               [](auto& d) {
                 add_process(d[0], seen(kOwn));
                 add_process(d[3], seen(kOwn));
               }},
           Row{"somebody else's is on its own", Compliance::idle,
               [](auto& d) { add_process(d[0], seen(kOther)); }},
           Row{"it only draws on another", Compliance::idle,
               [](auto& d) { add_process(d[2], seen(kOwn, ProcessKind::graphics)); }},
           Row{"one of its own does not tell", Compliance::unknown, [](auto& d) { d[0].processes.reset(); }},
           Row{"one of the others does not tell", Compliance::unknown,
               [](auto& d) {
                 add_process(d[0], seen(kOwn));
                 d[2].processes.reset();
               }},
           Row{"it strays, and another does not tell", Compliance::strays,
               [](auto& d) {
                 add_process(d[2], seen(kOwn));
                 d[3].processes.reset();
               }},
           Row{"what one says is old", Compliance::unknown,
               [](auto& d) {
                 add_process(d[0], seen(kOwn));
                 d[0].state = DeviceState::unresponsive;
               }},
           Row{"one that is lost has nobody on it", Compliance::keeps,
               [](auto& d) {
                 add_process(d[0], seen(kOwn));
                 d[2].state = DeviceState::lost;
                 d[2].processes.reset();
               }},
           Row{"a nameless process may be its", Compliance::unknown,
               [](auto& d) { add_process(d[0], seen(kNameless)); }},
           Row{"beside its own a nameless one is somebody's", Compliance::keeps,
               [](auto& d) {
                 add_process(d[0], seen(kNameless));
                 add_process(d[0], seen(kOwn));
               }},
           Row{"a nameless one elsewhere says nothing", Compliance::idle,
               [](auto& d) { add_process(d[2], seen(kNameless)); }},
       }) {
    CAPTURE(row.why);
    Facts facts = machine(4);
    facts.process_leases = {{kOwn, TicketId{1}}, {kOther, TicketId{2}}};
    row.arrange(facts.snapshot.devices);
    Ticket job = lease(1, uuid_of(0));
    job.devices.push_back(uuid_of(1));
    CHECK(compliance_of(job, {}, facts).compliance == row.compliance);
  }
}

TEST_CASE("an old answer tells nothing") {
  Facts facts = machine(1);
  add_process(facts.snapshot.devices[0], seen(kOwn));
  facts.process_leases = {{kOwn, TicketId{1}}};
  facts.snapshot.stale_reason = "the driver hangs";
  CHECK(compliance_of(lease(1, uuid_of(0)), {}, facts).compliance == Compliance::unknown);
}

TEST_CASE("an instance is leased with its GPU, and the split GPU itself is nobody's place") {
  Facts facts = machine(2);
  split(facts.snapshot, 0, 2);
  std::vector<Device>& devices = facts.snapshot.devices;
  REQUIRE(devices[1].mig);
  add_process(devices[0], seen(kOwn));
  add_process(devices[1], seen(kOwn));
  facts.process_leases = {{kOwn, TicketId{1}}};
  CHECK(compliance_of(lease(1, devices[1].uuid), {}, facts).compliance == Compliance::keeps);
  CHECK(compliance_of(lease(1, devices[0].uuid), {}, facts).compliance == Compliance::keeps);
  CHECK(compliance_of(lease(1, devices[2].uuid), {}, facts).compliance == Compliance::strays);
}

TEST_CASE("a program with two leases is on the devices of each, and strays from neither") {
  Facts facts = machine(3);
  add_process(facts.snapshot.devices[0], seen(kOwn));
  add_process(facts.snapshot.devices[1], seen(kOwn));
  facts.process_leases = {{kOwn, TicketId{1}}, {kOwn, TicketId{2}}};
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  for (const Ticket& each : ledger.tickets)
    CHECK(compliance_of(each, ledger, facts).compliance == Compliance::keeps);
  add_process(facts.snapshot.devices[2], seen(kOwn));
  for (const Ticket& each : ledger.tickets)
    CHECK(compliance_of(each, ledger, facts).compliance == Compliance::strays);
}

TEST_CASE("the report has the devices of the lease, those that it uses, and those that do not tell") {
  Facts facts = machine(4);
  facts.process_leases = {{kOwn, TicketId{1}}};
  add_process(facts.snapshot.devices[2], seen(kOwn));
  facts.snapshot.devices[3].processes.reset();
  const ComplianceReport report = compliance_of(lease(1, uuid_of(0)), {}, facts);
  REQUIRE(report.devices.size() == 3);
  CHECK(report.devices[0].leased);
  CHECK(report.devices[0].processes.empty());
  CHECK(report.devices[1].processes.front()->pid == kOwn);
  CHECK_FALSE(report.devices[2].told);
}

TEST_CASE("the job of a share overruns where it uses more than its promise") {
  const Ticket share = [] {
    Ticket ticket;
    ticket.shared = true;
    ticket.promise_bytes = 10 * kGiB;
    return ticket;
  }();
  const Device fuller = gpu(0);
  const Device full = gpu(1);
  const Process much = process(1, 11 * kGiB);
  const Process little = process(2, 2 * kGiB);
  ComplianceReport report;
  report.devices = {{&full, true, true, {&much}, {}}, {&fuller, true, true, {&much, &little}, {}}};
  REQUIRE(overrun_of(share, report));
  CHECK(overrun_of(share, report)->device == &fuller);
  CHECK(overrun_of(share, report)->used_bytes == 13 * kGiB);
  Ticket whole = share;
  whole.shared = false;
  CHECK_FALSE(overrun_of(whole, report));
  Ticket enough = share;
  enough.promise_bytes = 13 * kGiB;
  CHECK_FALSE(overrun_of(enough, report));
  report.devices = {{&full, false, true, {&much}, {}}};
  CHECK_FALSE(overrun_of(share, report));
}

TEST_CASE("a leased device is idle while nothing of its lease computes on it") {
  Facts facts = machine(2);
  const Device& device = facts.snapshot.devices[0];
  CHECK_FALSE(is_idle(device, {}, facts).has_value());
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0))};
  CHECK(is_idle(device, leases_holding(device, ledger), facts) == true);
  add_process(facts.snapshot.devices[0], seen(kOther));
  CHECK(is_idle(device, leases_holding(device, ledger), facts) == true);
  facts.process_leases = {{kOther, TicketId{1}}};
  CHECK(is_idle(device, leases_holding(device, ledger), facts) == false);
  facts.snapshot.devices[0].processes.reset();
  CHECK_FALSE(is_idle(device, leases_holding(device, ledger), facts).has_value());
}

TEST_CASE("since when a device is idle is known to who has seen it in use, or its grant") {
  Facts facts = machine(1);
  facts.process_leases = {{kOwn, TicketId{1}}};
  const Facts idle = facts;
  add_process(facts.snapshot.devices[0], seen(kOwn));
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0))};
  ledger.tickets[0].since_s = 500;
  const auto look = [&](IdleTimes& times, Facts at, std::int64_t at_s) {
    at.snapshot.taken_at_ns = at_s * 1'000'000'000;
    times.look(ledger, at);
    return times.since(at.snapshot.devices[0], leases_holding(at.snapshot.devices[0], ledger));
  };
  IdleTimes times;
  CHECK_FALSE(look(times, idle, 1000).has_value());
  CHECK_FALSE(look(times, idle, 1001).has_value());
  CHECK_FALSE(look(times, facts, 1002).has_value());
  CHECK(look(times, idle, 1003) == 1003);
  CHECK(look(times, idle, 1004) == 1003);
  CHECK_FALSE(look(times, facts, 1005).has_value());

  IdleTimes from_the_grant;
  const Ledger granted = std::exchange(ledger, {});
  CHECK_FALSE(look(from_the_grant, idle, 400).has_value());
  ledger = granted;
  CHECK(look(from_the_grant, idle, 501) == 500);
}

}  // namespace
}  // namespace berth::compliance_test
