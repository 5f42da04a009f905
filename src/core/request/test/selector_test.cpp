#include "berth/request/request.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::selector_test {
namespace {

using namespace test;

/// GPUs 0 to 11; GPU 2 is split into two instances, so places 3 and 4 are those.
Snapshot machine_with_mig() {
  Facts facts = machine(12);
  split(facts.snapshot, 2, 2);
  return facts.snapshot;
}

TEST_CASE("a selector names devices by index, slot, UUID, its beginning, or PCI bus id") {
  const Snapshot snapshot = machine_with_mig();
  using Indices = std::vector<std::size_t>;
  struct Row {
    std::string selector;
    Indices places;
  };
  for (const Row& row : {
           Row{"0", {0}},
           Row{" 3 ", {5}},
           Row{"2", {3, 4}},
           Row{"2:1", {4}},
           Row{uuid_of(1), {1}},
           Row{"gpu-00000001", {1}},
           Row{"GPU-0000001", {12, 13}},
           Row{"MIG-21", {4}},
           Row{uuid_of(2), {3, 4}},
           Row{"MIG-" + uuid_of(2) + "/8/0", {4}},
           Row{"0000:01:00.0", {1, 13}},
           Row{"04:00.0", {6}},
           Row{"4:00.0", {}},
           Row{"12", {}},
           Row{"2:5", {}},
           Row{"", {}},
           Row{"A100", {}},
           Row{"GPU-ff", {}},
       }) {
    CHECK_MESSAGE(devices_named(row.selector, snapshot) == row.places, row.selector);
  }
}

TEST_CASE("for later an index becomes a UUID, and what is no index stays") {
  Snapshot snapshot = machine_with_mig();
  const std::vector<std::string> typed{"0", "2", "2:1", "GPU-0000000", "04:00.0", "99", "3:7"};
  CHECK(as_uuids(typed, snapshot) == std::vector<std::string>{uuid_of(0), uuid_of(2),
                                                              snapshot.devices[4].uuid, "GPU-0000000",
                                                              "04:00.0", "99", "3:7"});
  snapshot.devices[0].uuid.clear();
  CHECK(as_uuids({"0"}, snapshot) == std::vector<std::string>{"0"});
  for (const char* counting : {"0", " 3 ", "2:1"}) CHECK_MESSAGE(counts_devices(counting), counting);
  for (const char* other : {"", "GPU-0", "MIG-21", "04:00.0", "0000:01:00.0"})
    CHECK_FALSE_MESSAGE(counts_devices(other), other);
}

TEST_CASE("a selector that names nothing or several is refused with what there is") {
  Snapshot snapshot = machine_with_mig();
  const auto message = [&](std::string_view selector) {
    const auto places = resolve_selector(selector, snapshot);
    REQUIRE(!places);
    CHECK(places.error().code == ErrorCode::usage);
    return places.error().message;
  };
  CHECK(message("12") == "there is no device \"12\": this machine has 0, 1, 2:0, 2:1, 3-11");
  CHECK(message("GPU-ff") == "there is no device \"GPU-ff\": this machine has 0, 1, 2:0, 2:1, 3-11");
  CHECK(message("GPU-0000001") ==
        "\"GPU-0000001\" is the beginning of 2 UUIDs (devices 10, 11): write more of it");
  CHECK(message("A100") ==
        "\"A100\" names no device: expected an index (3), a MIG instance (3:1), a UUID (GPU-…) or its "
        "beginning, or a PCI "
        "bus id; this machine has 0, 1, 2:0, 2:1, 3-11");
  snapshot.devices[1].mig_enabled = true;
  CHECK(message("1") == "GPU 1 is in MIG mode and has no instance: this machine has 0, 2:0, 2:1, 3-11");
  snapshot.devices.clear();
  CHECK(message("0") == "there is no device \"0\": this machine has no device");
}

}  // namespace
}  // namespace berth::selector_test
