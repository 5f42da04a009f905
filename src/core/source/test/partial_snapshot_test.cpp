#include "berth/source/source.h"

#include <doctest/doctest.h>

namespace berth::source::partial_snapshot_test {
namespace {

Device gpu(unsigned index) {
  Device device;
  device.index = index;
  device.uuid = "GPU-" + std::to_string(index);
  return device;
}

TEST_CASE("the device it hangs at and those behind it do not respond; the others are as they were read") {
  Snapshot partial;
  partial.devices = {gpu(0)};
  const Stage stage{.kind = Stage::Kind::device, .index = 1, .count = 3};
  const Snapshot known = finish_interrupted(partial, stage, std::nullopt, "14:02");
  REQUIRE(known.devices.size() == 3);
  CHECK(known.devices[0] == gpu(0));
  CHECK(known.devices[1].index == 1);
  CHECK(known.devices[1].state == DeviceState::unresponsive);
  CHECK(known.devices[1].state_reason == "driver not responding since 14:02");
  CHECK(known.devices[2].state == DeviceState::unresponsive);
  CHECK(known.devices[2].state_reason == "not asked: driver not responding since 14:02 at GPU 1");
  CHECK_FALSE(known.stale_reason);
}

TEST_CASE("what was known of silent devices is kept, and the whole marked stale") {
  Snapshot last;
  last.devices = {gpu(0), gpu(1), gpu(1), gpu(2)};
  last.devices[2].mig.emplace().slot = 4;
  Snapshot partial;
  partial.devices = {gpu(0)};
  const Stage stage{.kind = Stage::Kind::device, .index = 1, .count = 3};
  const Snapshot known = finish_interrupted(partial, stage, last, "14:02");
  REQUIRE(known.devices.size() == 4);
  CHECK(known.devices[1].uuid == "GPU-1");
  CHECK(known.devices[2].mig->slot == 4);
  CHECK(known.devices[2].state == DeviceState::unresponsive);
  CHECK(known.stale_reason == "driver not responding since 14:02 at GPU 1");
}

TEST_CASE("a hang that costs no device is a note") {
  Snapshot partial;
  partial.devices = {gpu(0)};
  for (const auto kind : {Stage::Kind::topology, Stage::Kind::users}) {
    const Snapshot known = finish_interrupted(partial, {.kind = kind}, std::nullopt, "14:02");
    CHECK(known.devices == partial.devices);
    CHECK(known.notes.size() == 1);
    CHECK_FALSE(known.stale_reason);
  }
}

TEST_CASE("devices of another maker come behind those that hang, in place of what was known of them") {
  Snapshot known;
  known.devices = {gpu(0), gpu(1), gpu(2)};
  for (Device& device : known.devices) device.state = DeviceState::unresponsive;
  known.devices[2].vendor = "amd";
  known.stale_reason = "driver not responding since 14:02";
  Snapshot other;
  other.devices = {gpu(0), gpu(1)};
  for (Device& device : other.devices) device.vendor = "amd";
  other.notes = {"a note"};
  const Snapshot both = beside(known, other);
  REQUIRE(both.devices.size() == 4);
  CHECK(both.devices[1] == known.devices[1]);
  for (unsigned index = 2; index < 4; ++index) {
    CHECK(both.devices[index].vendor == "amd");
    CHECK(both.devices[index].index == index);
    CHECK(both.devices[index].state == DeviceState::ok);
  }
  CHECK(both.stale_reason == known.stale_reason);
  CHECK(both.notes == other.notes);
  CHECK(beside(known, Snapshot()) == known);
}

}  // namespace
}  // namespace berth::source::partial_snapshot_test
