#include "berth/usage/run_samples.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace berth::run_samples_test {
namespace {

constexpr TicketId kLease{5};
constexpr std::uint32_t kOwn = 100;
constexpr std::uint64_t kPowerCap = 0x4;
constexpr std::uint64_t kIdle = 0x1;

const std::multimap<std::uint32_t, TicketId> kLeases{{kOwn, kLease}, {200, TicketId{6}}};

std::pair<std::string, std::string> ann(std::uint32_t pid) {
  return {"ann", "python " + std::to_string(pid)};
}

Device device_with(std::uint64_t used_bytes, std::vector<Process> processes) {
  Device device;
  device.uuid = "GPU-a";
  device.memory.used_bytes = used_bytes;
  device.utilization_percent = 40;
  device.throttle_reasons = kIdle;
  device.processes = std::move(processes);
  return device;
}

Snapshot look_at(Device device) {
  Snapshot snapshot;
  snapshot.devices.push_back(std::move(device));
  return snapshot;
}

Process process(std::uint32_t pid, Reading<std::uint64_t> used_bytes,
                ProcessKind kind = ProcessKind::compute) {
  Process process;
  process.pid = pid;
  process.kind = kind;
  process.used_bytes = used_bytes;
  return process;
}

SampledLease lease_of(bool shared) {
  return {.lease = kLease,
          .shared = shared,
          .path = "x",
          .machine = "/run/berth",
          .devices = {"GPU-a"},
          .every_ms = 10'000,
          .job = {.pid = 9, .start_ticks = 8}};
}

struct Sampled {
  explicit Sampled(bool shared = false) : lease(lease_of(shared)) { samples.every_ms = lease.every_ms; }
  Sampled& see(const Snapshot& look) {
    add_sample(samples, lease, look, kLeases, ann);
    return *this;
  }
  const DeviceSamples& device() const { return samples.devices.at(0); }

  SampledLease lease;
  RunSamples samples;
};

TEST_CASE("the peak is the most that a sample saw, the use their mean, and the throttling their share") {
  Sampled run;
  Device busy = device_with(30, {process(kOwn, 30)});
  busy.utilization_percent = 80;
  busy.throttle_reasons = kPowerCap | kIdle;
  run.see(look_at(device_with(10, {process(kOwn, 10)}))).see(look_at(busy));
  CHECK(run.samples.samples == 2);
  CHECK(run.device() == DeviceSamples{"GPU-a", 30, 120, 2, 1, 2, 0});
  CHECK(run.samples.outsiders.empty());
}

TEST_CASE(
    "indices mean other devices once a card before them is gone, and a look that cannot know says nothing") {
  Snapshot look = look_at(device_with(30, {}));
  look.devices.front().index = 1;
  Device first = device_with(0, {});
  first.uuid = "GPU-0";
  look.devices.insert(look.devices.begin(), first);
  const std::vector<std::string> devices{"GPU-a"};
  Sampled run;
  CHECK_FALSE(is_renumbered(run.samples, devices, {1}));
  run.see(look);
  CHECK_FALSE(is_renumbered(run.samples, devices, {1}));
  Snapshot hanging = look;
  hanging.devices.front().state = DeviceState::unresponsive;
  run.see(hanging);
  CHECK_FALSE(is_renumbered(run.samples, devices, {1}));
  for (const DeviceState state : {DeviceState::lost, DeviceState::not_permitted}) {
    Snapshot lost = look;
    lost.devices.front().state = state;
    CHECK(is_renumbered(Sampled().see(lost).samples, devices, {1}));
  }
  look.devices.erase(look.devices.begin());
  look.devices.front().index = 0;
  run.see(look);
  CHECK(is_renumbered(run.samples, devices, {1}));
  CHECK_FALSE(is_renumbered(run.samples, devices, {0}));
  look.devices.front().uuid = "GPU-9";
  run.see(look);
  CHECK(is_renumbered(run.samples, devices, {0}));
}

TEST_CASE("a share has the memory of its own processes, and neither use nor outsiders") {
  Sampled run(true);
  run.see(look_at(device_with(50, {process(kOwn, 7), process(200, 30), process(9, 13)})));
  CHECK(run.device() == DeviceSamples{"GPU-a", 7, 0, 0, 0, 0, 0});
  CHECK(run.samples.outsiders.empty());
  run.see(look_at(device_with(50, {process(kOwn, std::nullopt)})));
  CHECK(run.device().peak_bytes == 7U);
}

TEST_CASE("who computes on a whole card and is not of the lease is an outsider, and its memory another's") {
  Sampled run;
  const Snapshot look = look_at(device_with(50, {process(kOwn, 7), process(812, 30)}));
  run.see(look).see(look);
  REQUIRE(run.samples.outsiders.size() == 1);
  CHECK(run.samples.outsiders[0] == Outsider{"0", 812, "ann", "python 812", 20'000});
  CHECK(run.device().peak_bytes == 20U);
}

TEST_CASE("of very many outsiders the first eight are told, however long the others stay") {
  Sampled run;
  std::vector<Process> many;
  for (std::uint32_t pid = 1000; pid < 1020; ++pid) many.push_back(process(pid, 1));
  run.see(look_at(device_with(50, many))).see(look_at(device_with(50, many)));
  REQUIRE(run.samples.outsiders.size() == 8);
  CHECK(run.samples.outsiders[7] == Outsider{"0", 1007, "ann", "python 1007", 20'000});
}

TEST_CASE("a desktop is no outsider, and what another lease of the user computes is one") {
  Sampled run;
  run.see(look_at(device_with(5, {process(3, 5, ProcessKind::graphics), process(200, 1)})));
  REQUIRE(run.samples.outsiders.size() == 1);
  CHECK(run.samples.outsiders[0].pid == 200);
}

TEST_CASE("a look of the agent counts if the driver answered, and was asked for all that samples need") {
  Snapshot look = look_at(device_with(5, {}));
  look.readings = readings_for_listing();
  CHECK(is_worth_own_look(look_for_samplers(look)));
  look.readings = readings_of_sampler();
  CHECK(is_worth_own_look(look));
  for (const ReadingKind each : {ReadingKind::memory, ReadingKind::processes, ReadingKind::utilization,
                                 ReadingKind::throttle, ReadingKind::mig}) {
    look.readings.bits = readings_of_sampler().bits & ~ReadingSet(each).bits;
    CHECK_FALSE(is_worth_own_look(look));
  }
  look.readings = readings_for_listing();
  look.stale_reason = "the driver hangs";
  CHECK_FALSE(is_worth_own_look(look_for_samplers(look)));
}

TEST_CASE("samples of what the agent tells are those of a look of one's own, and it tells no more") {
  Device device = device_with(50, {process(kOwn, 7), process(812, 30, ProcessKind::graphics)});
  device.index = 3;
  device.mig = MigPlacement{"GPU-b", 1, 2, 0};
  device.throttle_reasons = kPowerCap;
  device.health.last_xid = 79;
  device.energy_mj = 5;
  device.accounted.emplace();
  device.processes->at(1).command = "python secret.py";
  device.processes->at(1).user = "bob";
  device.processes->at(1).uid = 1002;
  device.processes->at(1).container = "abc";
  Snapshot look = look_at(device);
  look.notes = {"a note"};
  look.topology.emplace();
  Device told = device;
  told.health = {};
  told.energy_mj.reset();
  told.accounted.reset();
  told.processes = {process(kOwn, 7), process(812, 30, ProcessKind::graphics)};
  CHECK(look_for_samplers(look) == look_at(told));
  Device silent = device;
  silent.processes.reset();
  silent.state = DeviceState::lost;
  CHECK_FALSE(look_for_samplers(look_at(silent)).devices[0].processes);
  CHECK(look_for_samplers(look_at(silent)).devices[0].state == DeviceState::lost);
  for (const bool shared : {false, true}) {
    Sampled own(shared);
    Sampled others(shared);
    CHECK(own.see(look).samples == others.see(look_for_samplers(look)).samples);
  }
}

TEST_CASE("only a sampler that looks seldom waits for the agent") {
  CHECK(may_wait_for_agent(10'000));
  CHECK(may_wait_for_agent(2 * kWaitsForAgentMs));
  CHECK_FALSE(may_wait_for_agent(2 * kWaitsForAgentMs - 1));
  CHECK_FALSE(may_wait_for_agent(100));
}

TEST_CASE("what a look does not tell is no sample") {
  Sampled run;
  Snapshot stale = look_at(device_with(5, {}));
  stale.stale_reason = "the driver hangs";
  run.see(stale).see(Snapshot{});
  Device lost = device_with(5, {});
  lost.state = DeviceState::lost;
  run.see(look_at(lost));
  CHECK(run.samples.samples == 0);
  Device silent = device_with(0, {});
  silent.memory = {};
  silent.utilization_percent.reset();
  silent.throttle_reasons.reset();
  silent.processes.reset();
  run.see(look_at(silent));
  CHECK(run.samples.samples == 1);
  CHECK(run.device() == DeviceSamples{.uuid = "GPU-a", .runtime_index = 0});
}

TEST_CASE("a peak that lasts as long as the interval is never missed, and no higher one is told") {
  std::mt19937 random(7);
  const auto below = [&](unsigned most) {
    return std::uniform_int_distribution<unsigned>(0, most - 1)(random);
  };
  for (int round = 0; round < 10'000; ++round) {
    const unsigned every = 1 + below(12);
    std::vector<std::uint64_t> curve(every + 1 + below(100));
    for (std::uint64_t level = 0; std::uint64_t& at : curve) at = level = below(4) == 0 ? below(1000) : level;
    Sampled run;
    for (std::size_t at = below(every); at < curve.size(); at += every)
      run.see(look_at(device_with(curve[at], {process(kOwn, curve[at])})));
    std::uint64_t lasting = 0;
    for (std::size_t from = 0; from + every <= curve.size(); ++from)
      lasting =
          std::max(lasting, *std::min_element(curve.begin() + static_cast<std::ptrdiff_t>(from),
                                              curve.begin() + static_cast<std::ptrdiff_t>(from + every)));
    REQUIRE(run.device().peak_bytes >= lasting);
    REQUIRE(*run.device().peak_bytes <= *std::ranges::max_element(curve));
  }
}

AccountedProcess accounted(std::uint32_t pid, std::int64_t started_s, std::uint64_t lasted_s,
                           std::uint64_t peak_bytes, unsigned use_percent) {
  return {pid, false, use_percent, peak_bytes, started_s * 1'000'000, lasted_s * 1000};
}

TEST_CASE("the accounting gives the peak of what lived at the same time, and the use over the whole run") {
  const auto use = [](std::vector<AccountedProcess> processes, std::vector<std::uint32_t> outsiders = {}) {
    return accounted_use(processes, outsiders, 100'000'000, 200'000'000);
  };
  CHECK(use({accounted(1, 110, 50, 7, 80)}) == AccountedUse{7, 40});
  CHECK(use({accounted(1, 110, 10, 7, 100), accounted(2, 130, 10, 9, 100)}) == AccountedUse{9, 20});
  CHECK(use({accounted(1, 110, 50, 7, 100), accounted(2, 130, 50, 9, 100)}) == AccountedUse{16, 100});
  // Before the run, after it, and another's.
  CHECK(use({accounted(1, 90, 50, 7, 80), accounted(2, 201, 1, 7, 80), accounted(3, 120, 9, 7, 80)}, {3}) ==
        AccountedUse{});
  AccountedProcess running = accounted(1, 150, 0, 7, 100);
  running.runs = true;
  CHECK(use({running}) == AccountedUse{7, 50});
  AccountedProcess silent = accounted(1, 150, 10, 7, 100);
  silent.use_percent.reset();
  silent.peak_bytes.reset();
  CHECK(use({silent, running}) == AccountedUse{});
}

TEST_CASE("no number of the driver breaks the arithmetic") {
  CHECK(rc::check([](std::int64_t started_us, std::uint64_t lasted_ms, std::uint64_t peak_bytes,
                     unsigned percent, bool runs) {
    const AccountedUse use =
        accounted_use(std::vector{AccountedProcess{1, runs, percent, peak_bytes, started_us, lasted_ms}}, {},
                      0, 1'000'000'000);
    RC_ASSERT(use.use_percent.value_or(0) <= 100U);
  }));
}

TEST_CASE("what the two programs tell each other is read as it was written") {
  const SampledLease lease = lease_of(true);
  CHECK(decode_sampled_lease(encode_sampled_lease(lease)) == lease);
  const RunSamples samples{
      10'000, 3, {{"GPU-a", 5, 120, 3, 1, 2, kNotCounted}}, {{"0", 812, "ann", "x", 3000}}};
  CHECK(decode_run_samples(encode_run_samples(samples)) == samples);
  const std::string text = encode_run_samples(samples);
  for (std::size_t cut = 0; cut < text.size(); ++cut) CHECK_FALSE(decode_run_samples(text.substr(0, cut)));
}

TEST_CASE("a line in a section is none of the fields outside of it, also of a section that is not known") {
  const auto samples = decode_run_samples(
      "berth-run-samples 1\nevery_ms=1000\nsamples=3\n[device]\nuuid=GPU-1\nsamples=9\n"
      "[later]\nevery_ms=7\nend\n");
  REQUIRE(samples);
  CHECK(samples->samples == 3);
  CHECK(samples->every_ms == 1000);
  CHECK(samples->devices.size() == 1);
}

}  // namespace
}  // namespace berth::run_samples_test
