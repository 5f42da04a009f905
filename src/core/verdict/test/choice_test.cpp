#include "berth/verdict/verdict.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::choice_test {
namespace {

using namespace test;
using Uuids = std::vector<std::string>;

Choice chosen(const Request& request, const Facts& facts) {
  const Result<std::vector<Verdict>> verdicts = judge(request, {}, facts);
  REQUIRE(verdicts);
  return choose(request, *verdicts, facts.snapshot);
}

Uuids uuids_of(std::initializer_list<unsigned> indices) {
  Uuids uuids;
  for (const unsigned index : indices) uuids.push_back(uuid_of(index));
  return uuids;
}

Request request_for(unsigned count, Order order) {
  Request request;
  request.count = count;
  request.order = order;
  return request;
}

TEST_CASE("devices on which runs have died are chosen last, and chosen where there are no others") {
  Facts facts = machine(4);
  facts.bad_runs = {{uuid_of(0), 2}, {uuid_of(2), 1}};
  for (const Order order : {Order::automatic, Order::index, Order::worst_fit}) {
    CHECK(chosen(request_for(1, order), facts).uuids == uuids_of({1}));
    CHECK(chosen(request_for(2, order), facts).uuids == uuids_of({1, 3}));
    CHECK(chosen(request_for(3, order), facts).uuids == uuids_of({1, 2, 3}));
    CHECK(chosen(request_for(4, order), facts).uuids == uuids_of({0, 1, 2, 3}));
  }
  Request only = request_for(1, Order::index);
  only.devices = {"0", "2"};
  CHECK(chosen(only, facts).uuids == uuids_of({2}));
}

/// Four GPUs that differ: 2 is the coolest, 1 the most frugal, 3 the most capable, 0 the fullest.
Facts motley_machine() {
  Facts facts = machine(4);
  auto& devices = facts.snapshot.devices;
  const int temperatures[] = {50, 40, 30, 60};
  const unsigned powers[] = {300, 100, 200, 400};
  const std::uint64_t used[] = {400, 300, 200, 100};
  for (std::size_t i = 0; i < 4; ++i) {
    devices[i].temperature_c = temperatures[i];
    devices[i].power_mw = powers[i];
    devices[i].memory.used_bytes = used[i] * kMiB;
  }
  devices[3].compute_capability = 90;
  return facts;
}

TEST_CASE("the devices are taken in the order in which the request lists them") {
  Request request = request_for(2, Order::listed);
  request.devices = {"3", "1", "0"};
  CHECK(chosen(request, machine(4)).uuids == uuids_of({1, 3}));
  request.devices.clear();
  request.admitted = uuids_of({2, 0, 1});
  CHECK(chosen(request, machine(4)).uuids == uuids_of({0, 2}));
}

TEST_CASE("a device with a blemish is taken after the others") {
  Facts facts = motley_machine();
  auto& devices = facts.snapshot.devices;
  devices[0].health.row_remap_pending = true;
  devices[2].health.ecc_uncorrected = 1;
  for (const Order order : {Order::automatic, Order::index, Order::coolest, Order::worst_fit}) {
    CHECK(chosen(request_for(2, order), facts).uuids == uuids_of({1, 3}));
    CHECK(chosen(request_for(4, order), facts).uuids == uuids_of({0, 1, 2, 3}));
  }
  CHECK(chosen(request_for(3, Order::index), facts).uuids == uuids_of({0, 1, 3}));
  CHECK(chosen(request_for(3, Order::coolest), facts).uuids == uuids_of({1, 2, 3}));
  CHECK(chosen(request_for(3, Order::automatic), facts).uuids == uuids_of({0, 1, 3}));
  devices[0].health = {};
  devices[0].health.retired_pages_pending = true;
  CHECK(chosen(request_for(1, Order::automatic), facts).uuids != uuids_of({0}));
  // Counters that are not there, or that are zero, are no blemish.
  devices[0].health = {};
  devices[0].health.ecc_uncorrected = 0;
  CHECK(chosen(request_for(1, Order::index), facts).uuids == uuids_of({0}));
  Request listed = request_for(1, Order::listed);
  listed.devices = {"2", "3"};
  CHECK(chosen(listed, facts).uuids == uuids_of({2}));
}

/// GPUs 0 to 3 on one board, 4 and up on another.
Topology two_boards(unsigned count) {
  Topology topology;
  for (unsigned a = 0; a < count; ++a) {
    topology.uuids.push_back(uuid_of(a));
    for (unsigned b = 0; b < count; ++b)
      topology.links.push_back(Link{a / 4 == b / 4 ? 10U : 50U, a / 4 == b / 4 ? 4U : 0U});
  }
  return topology;
}

TEST_CASE("each order takes its best first and gives them by index") {
  struct Row {
    std::string why;
    Order order;
    unsigned count;
    Uuids uuids;
  };
  for (const Row& row : {
           Row{"lowest index", Order::index, 2, uuids_of({0, 1})},
           Row{"least free memory", Order::best_fit, 1, uuids_of({0})},
           Row{"most free memory", Order::worst_fit, 2, uuids_of({2, 3})},
           Row{"coolest", Order::coolest, 1, uuids_of({2})},
           Row{"two coolest", Order::coolest, 2, uuids_of({1, 2})},
           Row{"least power", Order::least_power, 1, uuids_of({1})},
           Row{"most capable", Order::most_capable, 1, uuids_of({3})},
           Row{"most capable, then most free", Order::most_capable, 2, uuids_of({2, 3})},
       }) {
    CHECK_MESSAGE(chosen(request_for(row.count, row.order), motley_machine()).uuids == row.uuids, row.why);
  }
}

TEST_CASE("a device without the reading comes last") {
  Facts facts = motley_machine();
  facts.snapshot.devices[2].temperature_c.reset();
  CHECK(chosen(request_for(1, Order::coolest), facts).uuids == uuids_of({1}));
  CHECK(chosen(request_for(4, Order::coolest), facts).uuids.size() == 4);
  for (Device& device : facts.snapshot.devices) device.power_mw.reset();
  CHECK(chosen(request_for(2, Order::least_power), facts).uuids == uuids_of({0, 1}));
}

TEST_CASE("several devices are taken by topology, and one where it hurts least") {
  Facts facts = machine(8);
  facts.snapshot.topology = two_boards(8);
  CHECK(chosen(request_for(4, Order::automatic), facts).uuids == uuids_of({0, 1, 2, 3}));
  facts.masks = {Mask{"", uuids_of({1, 2, 3, 4, 5, 6, 7}), {}}};
  CHECK(chosen(request_for(4, Order::topology), facts).uuids == uuids_of({4, 5, 6, 7}));
  CHECK(chosen(request_for(3, Order::automatic), facts).uuids == uuids_of({1, 2, 3}));
  facts.masks = {Mask{"", uuids_of({0, 4, 5, 6}), {}}};
  CHECK(chosen(request_for(2, Order::automatic), facts).uuids == uuids_of({4, 5}));
  CHECK(chosen(request_for(1, Order::automatic), facts).uuids == uuids_of({0}));
  facts.masks = {Mask{"", uuids_of({0, 1, 2, 4, 5}), {}}};
  CHECK(chosen(request_for(1, Order::automatic), facts).uuids == uuids_of({4}));
  CHECK(chosen(request_for(1, Order::automatic), facts).notes.empty());
}

TEST_CASE("a share goes where it fits best, and to an empty device last") {
  Facts facts = machine(6);
  const auto goes_to = [&](std::uint64_t bytes) {
    Request request = shared_request(bytes);
    Ledger ledger;
    ledger.tickets = {shared_lease(1, uuid_of(0), 20 * kGiB), shared_lease(2, uuid_of(2), 10 * kGiB)};
    return choose(request, judge(request, ledger, facts).value(), facts.snapshot).uuids;
  };
  facts.snapshot.topology = two_boards(6);
  CHECK(goes_to(10 * kGiB) == uuids_of({0}));
  CHECK(goes_to(25 * kGiB) == uuids_of({2}));
  CHECK(goes_to(35 * kGiB) == uuids_of({1}));
  // A small one that is empty would fit better.
  facts.snapshot.devices[1].memory.total_bytes = 26 * kGiB;
  CHECK(goes_to(25 * kGiB) == uuids_of({2}));
  CHECK(goes_to(25 * kGiB + 10 * kGiB) == uuids_of({3}));
}

TEST_CASE("the topology is asked for only where it decides, and missed only there") {
  const Facts facts = machine(4);
  const auto wanted = [&](unsigned count, Order order, unsigned devices) {
    const Request request = request_for(count, order);
    const Facts small = machine(devices);
    return readings_to_choose(request, judge(request, {}, small).value()).has(ReadingKind::topology);
  };
  CHECK(wanted(2, Order::automatic, 4));
  CHECK(wanted(2, Order::topology, 3));
  CHECK(wanted(1, Order::automatic, 3));
  CHECK(!wanted(2, Order::automatic, 2));
  CHECK(!wanted(1, Order::automatic, 2));
  CHECK(!wanted(2, Order::index, 4));
  const Choice without = chosen(request_for(2, Order::automatic), facts);
  CHECK(without.uuids == uuids_of({0, 1}));
  CHECK(without.notes == Uuids{"topology is not known: took the lowest index"});
  CHECK(chosen(request_for(4, Order::automatic), facts).notes.empty());
}

TEST_CASE("one device is a whole GPU where one is free, and the slice of one only where none is") {
  Facts facts = machine(3);
  split(facts.snapshot, 0, 2);
  CHECK(chosen(request_for(1, Order::automatic), facts).uuids == uuids_of({1}));
  CHECK(chosen(request_for(1, Order::index), facts).uuids == Uuids{facts.snapshot.devices[1].uuid});
  Request slices = request_for(1, Order::automatic);
  slices.conditions = {condition("mig")};
  CHECK(chosen(slices, facts).uuids == Uuids{facts.snapshot.devices[1].uuid});
}

TEST_CASE("a seed chooses the same devices for ever, and another seed others") {
  Request request = request_for(3, Order::random);
  const Facts facts = machine(8);
  request.seed = 1;
  CHECK(chosen(request, facts).uuids == chosen(request, facts).uuids);
  std::set<Uuids> choices;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    request.seed = seed;
    choices.insert(chosen(request, facts).uuids);
  }
  CHECK(choices.size() > 40);  // of 56
  request.count = 1;
  request.seed = 42;
  CHECK(chosen(request, facts).uuids == uuids_of({3}));
}

TEST_CASE("choices keep their promises on random machines") {
  holds_for_any("as many free devices as asked for, each once, by ascending index", [] {
    Facts facts = machine(*rc::gen::inRange(1U, 20U));
    if (*rc::gen::arbitrary<bool>())
      facts.snapshot.topology = two_boards(static_cast<unsigned>(facts.snapshot.devices.size()));
    for (Device& device : facts.snapshot.devices) {
      if (*rc::gen::element(0, 1, 2) == 0) device.state = DeviceState::lost;
      if (*rc::gen::arbitrary<bool>()) device.temperature_c.reset();
      device.power_mw = *rc::gen::inRange(0U, 3U);
    }
    Request request;
    request.order = static_cast<Order>(*rc::gen::inRange(0, 9));
    request.seed = *rc::gen::arbitrary<std::uint64_t>();
    std::vector<Verdict> verdicts = judge(request, {}, facts).value();
    const auto free =
        std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.free(); });
    RC_PRE(free > 0);
    request.count = *rc::gen::inRange(1U, static_cast<unsigned>(free) + 1);
    const Uuids uuids = choose(request, verdicts, facts.snapshot).uuids;
    RC_ASSERT(uuids.size() == request.count);
    RC_ASSERT(std::set<std::string>(uuids.begin(), uuids.end()).size() == uuids.size());
    RC_ASSERT(std::is_sorted(uuids.begin(), uuids.end()));
    for (const Verdict& verdict : verdicts) {
      const bool taken = std::find(uuids.begin(), uuids.end(), verdict.uuid) != uuids.end();
      RC_ASSERT(verdict.free() || !taken);
    }
  });
}

}  // namespace
}  // namespace berth::choice_test
