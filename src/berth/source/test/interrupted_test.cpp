#include "berth/source/interrupted.h"

#include <doctest/doctest.h>

namespace berth::source {
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

}  // namespace
}  // namespace berth::source
