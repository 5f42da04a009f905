#include "berth/source/nvml/nvml_reader.h"

#include <doctest/doctest.h>

#include <deque>

#include "berth/source/test/collected.h"
#include "fake_driver.h"

namespace berth::nvml::xid_events_test {
namespace {

std::deque<Event> g_events;
bool g_never_ends = false;
int g_sets = 0;

Return create(EventSet* set) {
  *set = reinterpret_cast<EventSet>(static_cast<std::uintptr_t>(++g_sets));
  return kSuccess;
}
Return register_events(Handle device, std::uint64_t types, EventSet set) {
  CHECK(types == kXidEvent);
  CHECK(set == reinterpret_cast<EventSet>(static_cast<std::uintptr_t>(g_sets)));
  return FakeDriver::enter("register", device);
}
Return wait(EventSet, Event* event, unsigned milliseconds) {
  CHECK(milliseconds == 0);
  ++FakeDriver::current().calls["wait"];
  if (g_events.empty()) return 10;  // a timeout
  *event = g_events.front();
  if (!g_never_ends) g_events.pop_front();
  return kSuccess;
}

Event xid(unsigned index, std::uint64_t number) {
  return {FakeDriver::handle_of(index), kXidEvent, number, ~0U, ~0U};
}

struct Machine {
  FakeDriver driver{{{.uuid = "GPU-0"}, {.uuid = "GPU-1"}}};
  Library library = driver.library();
  XidEvents events;

  Machine() {
    g_events.clear();
    g_never_ends = false;
    driver.set("nvmlEventSetCreate", create);
    driver.set("nvmlDeviceRegisterEvents", register_events);
    driver.set("nvmlEventSetWait_v2", wait);
  }

  void look() {
    events.take(library);
    for (unsigned index = 0; index < 2; ++index) events.watch(library, index);
  }
  Reading<unsigned> seen(unsigned index, Reading<unsigned> in_log = std::nullopt) const {
    Device device;
    device.index = index;
    device.health.last_xid = in_log;
    events.note(device);
    return device.health.last_xid;
  }
};

TEST_CASE("an Xid that comes between two looks is that of its GPU") {
  Machine machine;
  machine.look();
  CHECK_FALSE(machine.seen(0));
  g_events = {xid(1, 31), xid(1, 79), {FakeDriver::handle_of(0), 1, 48, 0, 0}, xid(7, 48)};
  machine.look();
  CHECK_FALSE(machine.seen(0));
  CHECK(machine.seen(1) == 79U);
  // The fault of a program says less than that of the hardware before it.
  g_events = {xid(1, 43)};
  machine.look();
  CHECK(machine.seen(1) == 79U);
  CHECK(machine.driver.calls["register"] == 2);
}

TEST_CASE("the log of the kernel has more, where it can be read") {
  Machine machine;
  machine.look();
  g_events = {xid(0, 79)};
  machine.look();
  CHECK(machine.seen(0, 48U) == 48U);
  CHECK(machine.seen(0, 0U) == 0U);
}

TEST_CASE("a driver that always has one more event keeps nobody") {
  Machine machine;
  machine.look();
  g_never_ends = true;
  g_events = {xid(0, 79)};
  machine.look();
  CHECK(machine.driver.calls["wait"] <= 256);
  CHECK(machine.seen(0) == 79U);
}

TEST_CASE("a driver or a GPU without events has none, and is asked for nothing in vain") {
  Machine machine;
  machine.driver.gpus[0].answer = kNotSupported;
  machine.driver.gpus[1].handle = kGpuIsLost;
  machine.look();
  machine.look();
  CHECK_FALSE(machine.seen(0));
  CHECK(machine.driver.calls["register"] == 1);
  machine.driver.remove("nvmlEventSetCreate");
  Library older = machine.driver.library();
  machine.events.forget();
  machine.driver.calls.clear();
  machine.events.take(older);
  machine.events.watch(older, 0);
  CHECK(machine.driver.calls.empty());
}

TEST_CASE("after a new start of the library the GPUs are registered again") {
  Machine machine;
  machine.look();
  g_events = {xid(0, 79)};
  machine.look();
  machine.events.forget();
  CHECK_FALSE(machine.seen(0));
  machine.look();
  CHECK(machine.driver.calls["register"] == 4);
}

source::ReadRequest asking(ReadingSet readings) {
  source::ReadRequest request;
  request.readings = readings;
  return request;
}

TEST_CASE("events are asked for by whoever asks for them, and by nobody else") {
  Machine machine;
  NvmlReader reader([&machine] { return Result<Library>(machine.driver.library()); });
  source::Collected first;
  REQUIRE(reader.read(asking(ReadingKind::health | ReadingKind::xid), first));
  CHECK(machine.driver.calls["register"] == 0);
  source::Collected second;
  REQUIRE(reader.read(asking(ReadingKind::xid_events), second));
  g_events = {xid(0, 79)};
  source::Collected third;
  REQUIRE(reader.read(asking(ReadingKind::xid_events), third));
  CHECK(third.snapshot.devices.at(0).health.last_xid == 79U);
  CHECK_FALSE(third.snapshot.devices.at(1).health.last_xid);
}

}  // namespace
}  // namespace berth::nvml::xid_events_test
