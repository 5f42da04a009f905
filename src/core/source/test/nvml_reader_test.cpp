#include "berth/source/nvml/nvml_reader.h"

#include <doctest/doctest.h>

#include "berth/source/test/collected.h"
#include "fake_driver.h"

namespace berth::nvml::nvml_reader_test {
namespace {

Return g_count_answer = kSuccess;

Return count_once(unsigned* count) {
  ++FakeDriver::current().calls["count"];
  *count = 1;
  return std::exchange(g_count_answer, kSuccess);
}

struct Machine {
  FakeDriver driver{{{.uuid = "GPU-0"}, {.uuid = "GPU-1"}}};
  NvmlReader reader{[this] { return Result<Library>(driver.library()); }};

  source::Collected read() {
    source::Collected collected;
    outcome = reader.read({}, collected);
    return collected;
  }
  Result<void> outcome;
};

TEST_CASE_FIXTURE(Machine, "each device is announced before it is asked") {
  const source::Collected collected = read();
  REQUIRE(outcome);
  CHECK(collected.stages ==
        std::vector<source::Stage>{{.kind = source::Stage::Kind::device, .index = 0, .count = 2},
                                   {.kind = source::Stage::Kind::device, .index = 1, .count = 2}});
  CHECK(collected.snapshot.devices.size() == 2);
}

TEST_CASE_FIXTURE(Machine, "a reader that is asked again starts the library once") {
  read();
  read();
  CHECK(driver.calls["nvmlInit_v2"] == 1);
}

TEST_CASE_FIXTURE(Machine, "a library that has lost its footing is started again") {
  driver.set("nvmlDeviceGetCount_v2", count_once);
  for (const Return lost : {kUninitialized, kUnknown}) {
    g_count_answer = lost;
    driver.calls.clear();
    read();
    CHECK(outcome);
    CHECK(driver.calls["nvmlShutdown"] == 1);
    CHECK(driver.calls["count"] == 2);
  }
}

TEST_CASE_FIXTURE(Machine, "access that was lost to all devices is looked for again at the next read") {
  driver.gpus[0].handle = driver.gpus[1].handle = kUnknown;
  CHECK(read().snapshot.devices.at(1).state == DeviceState::failed);
  driver.gpus[0].handle = driver.gpus[1].handle = kSuccess;
  CHECK(read().snapshot.devices.at(1).state == DeviceState::ok);
  CHECK(driver.calls["nvmlShutdown"] == 1);
  read();
  CHECK(driver.calls["nvmlShutdown"] == 1);
}

Return count_without_end(unsigned* count) {
  *count = kAbsent32;
  return kSuccess;
}

TEST_CASE_FIXTURE(Machine, "a driver that tells of more GPUs than a machine has is not asked for each") {
  driver.set("nvmlDeviceGetCount_v2", count_without_end);
  read();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message == "the driver tells of 4294967295 GPUs, which no machine has");
}

TEST_CASE("a library that cannot be loaded is tried again when it is asked again") {
  FakeDriver driver({{.uuid = "GPU-0"}});
  int tries = 0;
  NvmlReader reader([&]() -> Result<Library> {
    if (++tries == 1) return std::unexpected(Error{ErrorCode::no_driver, "not yet"});
    return driver.library();
  });
  source::Collected collected;
  CHECK_FALSE(reader.read({}, collected));
  CHECK(reader.read({}, collected));
}

}  // namespace
}  // namespace berth::nvml::nvml_reader_test
