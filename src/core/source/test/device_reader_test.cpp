#include "berth/source/nvml/device_reader.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "fake_driver.h"

namespace berth::nvml::device_reader_test {
namespace {

Memory2 g_memory2;
Memory1 g_memory1;

Return memory_v2(Handle device, Memory2* memory) {
  const Return outcome = FakeDriver::enter("memory_v2", device);
  if (outcome != kSuccess) return outcome;
  if (memory->version != 0x02000028) return kArgumentVersionMismatch;
  *memory = g_memory2;
  return kSuccess;
}
Return memory_v1(Handle device, Memory1* memory) {
  const Return outcome = FakeDriver::enter("memory", device);
  *memory = g_memory1;
  return outcome;
}
template <Return outcome>
Return refuse_v2(Handle, Memory2*) {
  return outcome;
}
Return utilization(Handle device, Utilization* value) {
  *value = {.gpu = 7, .memory = kAbsent32};
  return FakeDriver::enter("utilization", device);
}
Return temperature(Handle device, unsigned, unsigned* celsius) {
  *celsius = 41;
  return FakeDriver::enter("temperature", device);
}
Return power(Handle device, unsigned* milliwatts) {
  *milliwatts = 55000;
  return FakeDriver::enter("power", device);
}
Return performance_state(Handle, unsigned* state) {
  *state = 32;
  return kSuccess;
}
Return name_gb10(Handle device, char* text, unsigned) {
  std::strcpy(text, "NVIDIA GB10");
  return FakeDriver::enter("name", device);
}
Return compute_mode(Handle device, unsigned* mode) {
  *mode = 3;
  return FakeDriver::enter("compute_mode", device);
}

unsigned g_accounting = 1;

Return accounting_mode(Handle, unsigned* mode) {
  *mode = g_accounting;
  return kSuccess;
}
Return accounting_pids(Handle, unsigned* count, unsigned* pids) {
  const bool fits = *count >= 2;
  *count = 2;
  if (!fits) return kInsufficientSize;
  pids[0] = 7;
  pids[1] = 8;
  return kSuccess;
}
// The ring has gone on meanwhile.
Return accounting_stats(Handle, unsigned pid, AccountingStats* stats) {
  if (pid != 7) return kNotFound;
  *stats = {.gpu_percent = 80,
            .memory_percent = 20,
            .peak_bytes = 500,
            .lasted_ms = 9000,
            .started_us = 4,
            .runs = 0,
            .reserved = {}};
  return kSuccess;
}

struct Gpu {
  FakeDriver driver{{{.uuid = "GPU-0"}, {.uuid = "GPU-1"}}};
  std::vector<std::string> only;

  Gpu() {
    g_memory2 = {.version = 0, .total = 100, .reserved = 5, .free = 80, .used = 15};
    g_memory1 = {.total = 100, .free = 80, .used = 20};
    driver.set("nvmlDeviceGetMemoryInfo_v2", memory_v2);
    driver.set("nvmlDeviceGetMemoryInfo", memory_v1);
    driver.set("nvmlDeviceGetUtilizationRates", utilization);
    driver.set("nvmlDeviceGetTemperature", temperature);
    driver.set("nvmlDeviceGetPowerUsage", power);
    driver.set("nvmlDeviceGetComputeMode", compute_mode);
    driver.set("nvmlDeviceGetPerformanceState", performance_state);
  }

  Device read(ReadingSet readings) {
    Library library = driver.library();
    return read_device(library, 0, readings, only).at(0);
  }
};

TEST_CASE_FIXTURE(Gpu, "only what was asked for is called") {
  const Device device = read(ReadingKind::memory);
  CHECK(device.uuid == "GPU-0");
  CHECK(device.memory.used_bytes == 15U);
  CHECK(driver.calls == std::map<std::string, int>{{"nvmlDeviceGetHandleByIndex_v2", 1},
                                                   {"nvmlDeviceGetUUID", 1},
                                                   {"memory_v2", 1}});
}

TEST_CASE_FIXTURE(Gpu, "memory comes from the older call where the newer is missing or refuses its struct") {
  const std::vector<Return (*)(Handle, Memory2*)> refusals{refuse_v2<kFunctionNotFound>,
                                                           refuse_v2<kArgumentVersionMismatch>};
  for (const auto refusal : refusals) {
    driver.set("nvmlDeviceGetMemoryInfo_v2", refusal);
    const Device device = read(ReadingKind::memory);
    CHECK(device.memory.used_bytes == 20U);
    CHECK_FALSE(device.memory.reserved_bytes);
  }
  driver.remove("nvmlDeviceGetMemoryInfo_v2");
  CHECK(read(ReadingKind::memory).memory.total_bytes == 100U);
}

TEST_CASE_FIXTURE(Gpu, "a device whose memory is the machine's has the machine's numbers") {
  driver.set("nvmlDeviceGetName", name_gb10);
  driver.set("nvmlDeviceGetMemoryInfo_v2", refuse_v2<kNotSupported>);
  const Device refused = read(ReadingKind::memory);
  CHECK(refused.memory.kind == MemoryKind::unified);
  CHECK(refused.memory.total_bytes > 0U);
  g_memory2 = {};
  driver.set("nvmlDeviceGetMemoryInfo_v2", memory_v2);
  CHECK(read(ReadingKind::memory).memory.kind == MemoryKind::unified);
}

TEST_CASE_FIXTURE(Gpu, "a card that does not tell its memory is not taken for one that has the machine's") {
  driver.set("nvmlDeviceGetMemoryInfo_v2", refuse_v2<kNotSupported>);
  CHECK(read(ReadingKind::memory).memory == Memory{});
  driver.set("nvmlDeviceGetMemoryInfo_v2", refuse_v2<kNoPermission>);
  CHECK(read(ReadingKind::memory).memory == Memory{});
}

TEST_CASE_FIXTURE(Gpu, "a reading that is not there is absent, and the device is well") {
  const Device device = read(ReadingKind::utilization | ReadingKind::temperature | ReadingKind::power |
                             ReadingKind::fan | ReadingKind::modes);
  CHECK(device.state == DeviceState::ok);
  CHECK(device.utilization_percent == 7U);
  CHECK_FALSE(device.memory_utilization_percent);
  CHECK(device.temperature_c == 41);
  CHECK(device.power_mw == 55000U);
  CHECK_FALSE(device.power_limit_mw);
  CHECK_FALSE(device.fan_percent);
  CHECK_FALSE(device.performance_state);
}

TEST_CASE_FIXTURE(Gpu, "a lost device is a row with its reason, and is not asked any further") {
  driver.gpus[0].answer = kGpuIsLost;
  const Device device = read(readings_for_listing());
  CHECK(device.state == DeviceState::lost);
  CHECK(device.state_reason.contains("lost"));
  CHECK(driver.calls ==
        std::map<std::string, int>{{"nvmlDeviceGetHandleByIndex_v2", 1}, {"nvmlDeviceGetUUID", 1}});
}

TEST_CASE_FIXTURE(Gpu, "a device without a handle is a row with its reason") {
  const std::vector<std::pair<Return, DeviceState>> rows{{kGpuIsLost, DeviceState::lost},
                                                         {kResetRequired, DeviceState::needs_reset},
                                                         {kNoPermission, DeviceState::not_permitted},
                                                         {kInsufficientPower, DeviceState::failed},
                                                         {kUnknown, DeviceState::failed},
                                                         {kInvalidArgument, DeviceState::failed},
                                                         {12345, DeviceState::failed}};
  for (const auto& [outcome, state] : rows) {
    CAPTURE(outcome);
    driver.gpus[0].handle = outcome;
    const Device device = read(readings_for_listing());
    CHECK(device.state == state);
    CHECK_FALSE(device.state_reason.empty());
  }
}

Return capability_of_nonsense(Handle, int* major, int* minor) {
  *major = 1 << 30;
  *minor = 0;
  return kSuccess;
}
Return mig_is_on(Handle, unsigned* now, unsigned* after_reset) {
  *now = *after_reset = 1;
  return kSuccess;
}
Return slots_without_end(Handle, unsigned* slots) {
  *slots = kAbsent32;
  return kSuccess;
}
Return no_instance(Handle, unsigned, Handle*) {
  ++FakeDriver::current().calls["instance"];
  return kNotFound;
}

TEST_CASE_FIXTURE(Gpu, "numbers that no card has are not taken for numbers") {
  driver.set("nvmlDeviceGetCudaComputeCapability", capability_of_nonsense);
  CHECK_FALSE(read(ReadingKind::capability).compute_capability);
  driver.set("nvmlDeviceGetMigMode", mig_is_on);
  driver.set("nvmlDeviceGetMaxMigDeviceCount", slots_without_end);
  driver.set("nvmlDeviceGetMigDeviceHandleByIndex", no_instance);
  CHECK(read(ReadingKind::mig).mig_enabled == true);
  CHECK(driver.calls["instance"] <= 64);
}

/// What the driver tells of each field; what is not in it, it does not know.
std::map<std::uint32_t, FieldValue> g_fields;
std::set<std::uint32_t> g_asked;  ///< of the last call

Return field_values(Handle device, int count, FieldValue* values) {
  const Return outcome = FakeDriver::enter("field_values", device);
  g_asked.clear();
  for (int i = 0; i < count; ++i) {
    const auto known = g_fields.find(values[i].field);
    const std::uint32_t field = values[i].field;
    g_asked.insert(field);
    values[i] = known == g_fields.end() ? FieldValue{.result = kNotSupported} : known->second;
    values[i].field = field;
  }
  return outcome;
}
FieldValue told(std::uint64_t value, std::uint32_t type = kUnsigned32) {
  return {.type = type, .result = kSuccess, .value = value};
}
Return remapped_rows(Handle device, unsigned*, unsigned*, unsigned* pending, unsigned* failed) {
  *pending = 1;
  *failed = 0;
  return FakeDriver::enter("remapped_rows", device);
}
Return ecc_errors(Handle device, unsigned, unsigned, std::uint64_t* errors) {
  *errors = 5;
  return FakeDriver::enter("ecc_errors", device);
}
Return retired_pending(Handle device, unsigned* pending) {
  *pending = 1;
  return FakeDriver::enter("retired_pending", device);
}

TEST_CASE("processes that have ended are told where the accounting is on, and else are not known") {
  Gpu gpu;
  gpu.driver.set("nvmlDeviceGetAccountingMode", accounting_mode);
  gpu.driver.set("nvmlDeviceGetAccountingPids", accounting_pids);
  gpu.driver.set("nvmlDeviceGetAccountingStats", accounting_stats);
  g_accounting = 1;
  const auto told = gpu.read(ReadingKind::accounting).accounted;
  REQUIRE(told);
  CHECK(*told == std::vector{AccountedProcess{7, false, 80, 500, 4, 9000}});
  CHECK_FALSE(gpu.read(ReadingKind::health).accounted);
  g_accounting = 0;
  CHECK_FALSE(gpu.read(ReadingKind::accounting).accounted);
}

TEST_CASE("the health of a device comes in one call") {
  Gpu gpu;
  gpu.driver.set("nvmlDeviceGetFieldValues", field_values);
  gpu.driver.set("nvmlDeviceGetRemappedRows", remapped_rows);
  gpu.driver.set("nvmlDeviceGetTotalEccErrors", ecc_errors);
  gpu.driver.set("nvmlDeviceGetRetiredPagesPendingStatus", retired_pending);
  // The upper half of a value of 32 bits is whatever was there.
  g_fields = {{4, told(7, kUnsigned64)},
              {31, told(1)},
              {83, told(5'000'000'000, kUnsigned64)},
              {144, told(0xFFFFFFFF00000001)},
              {145, told(0xFFFFFFFF00000000)},
              {230, told(4)}};
  const Device device = gpu.read(ReadingKind::health | ReadingKind::energy);
  const Health& health = device.health;
  CHECK(device.energy_mj == 5'000'000'000U);
  CHECK(health == Health{.row_remap_failed = false,
                         .row_remap_pending = true,
                         .ecc_uncorrected = 7,
                         .retired_pages_pending = std::nullopt,
                         .recovery_action = "drain_and_reset",
                         .last_xid = std::nullopt});
  CHECK(gpu.driver.calls == std::map<std::string, int>{{"nvmlDeviceGetHandleByIndex_v2", 1},
                                                       {"nvmlDeviceGetUUID", 1},
                                                       {"field_values", 1}});
  CHECK(g_asked.contains(83));
  // The energy takes the driver longer than all else together.
  CHECK(gpu.read(ReadingKind::energy).energy_mj == 5'000'000'000U);
  CHECK(g_asked == std::set<std::uint32_t>{83});
  gpu.only = {"GPU-of another"};
  CHECK_FALSE(gpu.read(ReadingKind::energy).energy_mj);
  gpu.only = {gpu.read({}).uuid};
  CHECK(gpu.read(ReadingKind::energy).energy_mj);
  gpu.only.clear();
  CHECK_FALSE(gpu.read(ReadingKind::health).energy_mj);
  CHECK(g_asked == std::set<std::uint32_t>{4, 31, 144, 145, 230});
  g_fields[230] = told(42);
  CHECK(gpu.read(ReadingKind::health).health.recovery_action == "42");
  // A number of a kind that it never was is none.
  g_fields[230] = told(1, 0);
  CHECK(gpu.read(ReadingKind::health).health.recovery_action.empty());
}

TEST_CASE("what the call for all of the health does not tell is asked for as before") {
  Gpu gpu;
  gpu.driver.set("nvmlDeviceGetRemappedRows", remapped_rows);
  gpu.driver.set("nvmlDeviceGetTotalEccErrors", ecc_errors);
  gpu.driver.set("nvmlDeviceGetRetiredPagesPendingStatus", retired_pending);
  const Health older{.row_remap_failed = false,
                     .row_remap_pending = true,
                     .ecc_uncorrected = 5,
                     .retired_pages_pending = std::nullopt,
                     .recovery_action = "",
                     .last_xid = std::nullopt};
  CHECK(gpu.read(ReadingKind::health).health == older);
  gpu.driver.set("nvmlDeviceGetFieldValues", field_values);
  g_fields = {};
  CHECK(gpu.read(ReadingKind::health).health == older);
  gpu.driver.remove("nvmlDeviceGetRemappedRows");
  CHECK(gpu.read(ReadingKind::health).health.retired_pages_pending == true);
  g_fields = {{31, told(0)}};
  CHECK(gpu.read(ReadingKind::health).health.retired_pages_pending == false);
}

TEST_CASE_FIXTURE(Gpu, "a value that says that the device is gone is believed") {
  driver.set("nvmlDeviceGetFieldValues", field_values);
  g_fields = {{144, {.result = kGpuIsLost}}};
  CHECK(read(ReadingKind::health).state == DeviceState::lost);
}

TEST_CASE_FIXTURE(Gpu, "compute modes have their driver's numbers") {
  CHECK(read(ReadingKind::compute_mode).compute_mode == ComputeMode::exclusive_process);
}

}  // namespace
}  // namespace berth::nvml::device_reader_test
