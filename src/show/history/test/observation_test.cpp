#include "berth/history/model/usage_recorder.h"

#include <doctest/doctest.h>

namespace berth::history::observation_test {
namespace {

struct Scene {
  Facts facts;
  Ledger ledger;

  Scene() {
    Device device;
    device.uuid = "gpu0";
    device.name = "H100";
    device.memory.used_bytes = (100ULL << 20U) + 1;
    device.utilization_percent = 7;
    device.temperature_c = 40;
    device.power_mw = 99'600;
    device.processes = std::vector<Process>();
    facts.snapshot.devices.push_back(std::move(device));
  }

  void lease(std::uint64_t id) {
    Ticket ticket;
    ticket.id = {id};
    ticket.phase = TicketPhase::granted;
    ticket.user = "alice";
    ticket.since_s = 1000;
    ticket.devices = {"gpu0"};
    ledger.tickets.push_back(ticket);
  }

  void process(std::uint32_t pid, std::uint64_t lease_id, Reading<std::uint32_t> uid = 1000) {
    Process process;
    process.pid = pid;
    process.uid = uid;
    facts.snapshot.devices[0].processes->push_back(process);
    if (lease_id != 0) facts.process_leases.emplace(pid, TicketId{lease_id});
  }

  Observation observed() const { return observe(facts, ledger, {5000, std::chrono::seconds(1)}, 1); }
};

TEST_CASE("of a device its readings are kept, in whole units") {
  Scene scene;
  const Observation observation = scene.observed();
  REQUIRE(observation.devices.size() == 1);
  CHECK(observation.devices[0].sample == Sample{7, 100, 40, 100, 0});
  CHECK(observation.devices[0].label == "0");
  CHECK(observation.leases.empty());
}

TEST_CASE("of readings that are old only the leases are told") {
  Scene scene;
  scene.lease(1);
  scene.process(10, 1);
  scene.facts.snapshot.stale_reason = "the driver hangs";
  const Observation observation = scene.observed();
  CHECK(observation.devices[0].sample == Sample{{}, {}, {}, {}, 100});
  CHECK(observation.leases.at(0).devices.at(0).used == std::nullopt);
}

TEST_CASE("a lease is used by the processes that are its own") {
  Scene idle;
  idle.lease(1);
  CHECK(idle.observed().leases.at(0).devices.at(0).used == false);
  idle.process(10, 0);
  CHECK(idle.observed().leases.at(0).devices.at(0).used == false);
  idle.process(11, 1);
  CHECK(idle.observed().leases.at(0).devices.at(0).used == true);

  Scene nameless;
  nameless.lease(1);
  nameless.process(10, 0, std::nullopt);
  CHECK(nameless.observed().leases.at(0).devices.at(0).used == std::nullopt);
  nameless.facts.snapshot.devices[0].processes.reset();
  CHECK(nameless.observed().leases.at(0).devices.at(0).used == std::nullopt);
}

TEST_CASE("each of several leases on a device has its share, and its own use") {
  Scene scene;
  scene.lease(1);
  scene.lease(2);
  scene.process(10, 2);
  const Observation observation = scene.observed();
  REQUIRE(observation.leases.size() == 2);
  CHECK(observation.leases[0].devices.at(0).share == 0.5);
  CHECK(observation.leases[0].devices.at(0).used == false);
  CHECK(observation.leases[1].devices.at(0).used == true);
}

TEST_CASE("who computes beside a lease is told, also a program that the site ignores") {
  const auto beside = [](const Scene& scene) { return scene.observed().leases.at(0).devices.at(0).beside; };
  Scene scene;
  scene.lease(1);
  scene.process(10, 1);
  CHECK(beside(scene) == false);
  Scene visited = scene;
  visited.process(11, 0);
  visited.facts.snapshot.devices[0].processes->back().command = "sleep 7";
  visited.facts.policy.ignored_programs = {"sleep"};
  CHECK(beside(visited) == true);
  Scene nameless = scene;
  nameless.process(11, 0, std::nullopt);
  CHECK(beside(nameless) == std::nullopt);
  scene.facts.snapshot.devices[0].processes.reset();
  CHECK(beside(scene) == std::nullopt);
}

TEST_CASE("of a card its counter and its clocks are told, and of a part of one neither") {
  Scene scene;
  Device& device = scene.facts.snapshot.devices[0];
  CHECK(scene.observed().devices[0].throttled == std::nullopt);
  device.energy_mj = 4711;
  device.throttle_reasons = 1;  // idle: nothing slows it
  CHECK(scene.observed().devices[0].energy_mj == 4711);
  CHECK(scene.observed().devices[0].throttled == false);
  device.throttle_reasons = 0x40;
  CHECK(scene.observed().devices[0].throttled == true);
  device.mig.emplace();
  CHECK(scene.observed().devices[0].energy_mj == std::nullopt);
  CHECK(scene.observed().devices[0].throttled == std::nullopt);
}

TEST_CASE("who waits has nothing") {
  Scene scene;
  scene.lease(1);
  scene.ledger.tickets[0].phase = TicketPhase::waiting;
  CHECK(scene.observed().leases.empty());
}

TEST_CASE("a lease of a job is told with the name of the job, and what is none without") {
  Scene scene;
  for (const std::uint64_t id : {1, 2, 3}) scene.lease(id);
  scene.ledger.tickets[0].note = "job 12.7 sweep: for the paper";
  scene.ledger.tickets[1].note = "job 13";
  scene.ledger.tickets[2].note = "for the paper";
  const Observation observation = scene.observed();
  REQUIRE(observation.leases.size() == 3);
  CHECK(observation.leases[0].job == "sweep");
  CHECK(observation.leases[1].job == "");
  CHECK(observation.leases[2].job == std::nullopt);
}

}  // namespace
}  // namespace berth::history::observation_test
