#include "berth/usage/run_samples.h"

#include <algorithm>
#include <utility>

#include "berth/base/record_fields.h"
#include "berth/request/request.h"

namespace berth {
namespace {

constexpr unsigned kSamplesVersion = 1;
// If Berth cannot see the processes of this machine at all, it sees more outsiders than this.
constexpr std::size_t kMostOutsiders = 8;
constexpr std::size_t kLongestSampleText = 80;
constexpr std::uint64_t kPercent = 100;

// Of nvmlClocksEventReasons: the cap of power, a slowdown of the hardware, heat twice, and the
// power brake. Not idleness, and not the clocks that somebody has set.
constexpr std::uint64_t kSlowed = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

constexpr auto kSampledLease =
    record_of<SampledLease>("berth-sampled-lease", kSamplesVersion, [](auto& lease, auto&& field) {
      field("lease", lease.lease);
      field("shared", lease.shared);
      field("path", lease.path);
      field("machine", lease.machine);
      field("device", lease.devices);
      field("every_ms", lease.every_ms);
      field("job_pid", lease.job.pid);
      field("job_start", lease.job.start_ticks);
    });

constexpr auto kFieldsOfDeviceSamples = [](auto& samples, auto&& field) {
  field("uuid", samples.uuid);
  field("peak_bytes", samples.peak_bytes);
  field("used", samples.used);
  field("use_samples", samples.use_samples);
  field("throttled_samples", samples.throttled_samples);
  field("throttle_samples", samples.throttle_samples);
  field("runtime_index", samples.runtime_index);
};

constexpr auto kRunSamples = record_of<RunSamples>(
    "berth-run-samples", kSamplesVersion,
    [](auto& samples, auto&& field) {
      field("every_ms", samples.every_ms);
      field("samples", samples.samples);
      field.sections("device", samples.devices, kFieldsOfDeviceSamples);
      field.sections(kOutsider, samples.outsiders, kFieldsOfOutsider);
    },
    kLongestSampleText);

bool belongs_to(std::uint32_t pid, TicketId lease, const std::multimap<std::uint32_t, TicketId>& leases) {
  const auto [first, last] = leases.equal_range(pid);
  return std::any_of(first, last, [&](const auto& known) { return known.second == lease; });
}

DeviceSamples& samples_of(RunSamples& samples, const std::string& uuid) {
  const auto found = std::ranges::find(samples.devices, uuid, &DeviceSamples::uuid);
  return found != samples.devices.end() ? *found : samples.devices.emplace_back(DeviceSamples{uuid});
}

void note_outsider(RunSamples& samples, const std::string& device, std::uint32_t pid,
                   const DescribeProcess& describe) {
  const auto known = std::ranges::find_if(
      samples.outsiders, [&](const Outsider& each) { return each.pid == pid && each.device == device; });
  if (known != samples.outsiders.end()) {
    known->seen_ms += samples.every_ms;
    return;
  }
  if (samples.outsiders.size() == kMostOutsiders) return;
  auto [user, command] = describe(pid);
  samples.outsiders.push_back({device, pid, std::move(user), std::move(command), samples.every_ms});
}

/// Memory of the processes on a device: of those of the lease, and of all others.
struct MemoryBySide {
  Reading<std::uint64_t> own = 0;  ///< absent: one does not tell
  std::uint64_t others = 0;        ///< as far as they tell
};

MemoryBySide add_processes(RunSamples& samples, const SampledLease& lease, const Device& device,
                           const std::multimap<std::uint32_t, TicketId>& leases,
                           const DescribeProcess& describe) {
  MemoryBySide memory;
  if (!device.processes) return {.own = std::nullopt};
  for (const Process& process : *device.processes) {
    const bool is_own = belongs_to(process.pid, lease.lease, leases);
    if (!is_own) memory.others += process.used_bytes.value_or(0);
    if (is_own && !process.used_bytes) memory.own.reset();
    if (is_own && memory.own) *memory.own += *process.used_bytes;
    // A desktop draws on the device that it has.
    if (!is_own && !lease.shared && process.kind != ProcessKind::graphics)
      note_outsider(samples, label(device), process.pid, describe);
  }
  return memory;
}

void add_device(RunSamples& samples, const SampledLease& lease, const Device& device,
                const std::multimap<std::uint32_t, TicketId>& leases, const DescribeProcess& describe) {
  const MemoryBySide memory = add_processes(samples, lease, device, leases, describe);
  DeviceSamples& of_device = samples_of(samples, device.uuid);
  Reading<std::uint64_t> used = memory.own;
  if (!lease.shared && device.memory.used_bytes)
    used = *device.memory.used_bytes - std::min(*device.memory.used_bytes, memory.others);
  if (used) of_device.peak_bytes = std::max(of_device.peak_bytes.value_or(0), *used);
  if (lease.shared || device.mig) return;
  if (device.utilization_percent) {
    of_device.used += *device.utilization_percent;
    ++of_device.use_samples;
  }
  if (device.throttle_reasons) {
    ++of_device.throttle_samples;
    if (is_throttled(*device.throttle_reasons)) ++of_device.throttled_samples;
  }
}

void note_runtime_indices(RunSamples& samples, const Snapshot& look) {
  std::vector<std::string> uuids;
  for (const DeviceSamples& device : samples.devices) uuids.push_back(device.uuid);
  const auto indices = runtime_indices(uuids, look);
  if (!indices) return;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    const auto& index = (*indices)[i];
    samples.devices[i].runtime_index = index ? std::int64_t{*index} : kNotCounted;
  }
}

/// The time from which and to which a process counts.
struct Life {
  std::int64_t begun_us = 0;
  std::int64_t ended_us = 0;
  std::uint64_t peak_bytes = 0;
};

std::uint64_t highest_sum(const std::vector<Life>& lives) {
  std::uint64_t highest = 0;
  // The sum is highest at a moment at which one of the processes begins.
  for (const Life& at : lives) {
    std::uint64_t sum = 0;
    for (const Life& each : lives) {
      if (each.begun_us <= at.begun_us && at.begun_us < each.ended_us) sum += each.peak_bytes;
    }
    highest = std::max(highest, sum);
  }
  return highest;
}

}  // namespace

bool may_wait_for_agent(std::int64_t every_ms) {
  return every_ms >= 2 * kWaitsForAgentMs;
}

Snapshot look_for_samplers(const Snapshot& look) {
  Snapshot told;
  told.readings = look.readings;
  told.stale_reason = look.stale_reason;
  for (const Device& device : look.devices) {
    Device& bare = told.devices.emplace_back();
    bare.index = device.index;
    bare.uuid = device.uuid;
    bare.vendor = device.vendor;
    bare.mig = device.mig;
    bare.state = device.state;
    bare.memory = device.memory;
    bare.utilization_percent = device.utilization_percent;
    bare.throttle_reasons = device.throttle_reasons;
    if (!device.processes) continue;
    bare.processes.emplace();
    for (const Process& process : *device.processes) {
      Process& told_process = bare.processes->emplace_back();
      told_process.pid = process.pid;
      told_process.kind = process.kind;
      told_process.used_bytes = process.used_bytes;
    }
  }
  return told;
}

ReadingSet readings_of_sampler() {
  return ReadingKind::memory | ReadingKind::processes | ReadingKind::utilization | ReadingKind::throttle |
         ReadingKind::mig;
}

bool is_worth_own_look(const Snapshot& told) {
  if (told.stale_reason) return false;
  ReadingSet asked = told.readings;
  // The throttling is one of the modes.
  if (asked.has(ReadingKind::modes)) asked |= ReadingKind::throttle;
  return (asked.bits & readings_of_sampler().bits) == readings_of_sampler().bits;
}

bool is_throttled(std::uint64_t reasons) {
  return (reasons & kSlowed) != 0;
}

void add_sample(RunSamples& samples, const SampledLease& lease, const Snapshot& look,
                const std::multimap<std::uint32_t, TicketId>& leases, const DescribeProcess& describe) {
  if (look.stale_reason) return;
  bool has_seen = false;
  for (const std::string& uuid : lease.devices) {
    const Device* device = find_device(look, uuid);
    if (device == nullptr || device->state != DeviceState::ok) continue;
    add_device(samples, lease, *device, leases, describe);
    has_seen = true;
  }
  if (has_seen) ++samples.samples;
  note_runtime_indices(samples, look);
}

bool is_renumbered(const RunSamples& samples, const std::vector<std::string>& uuids,
                   const std::vector<std::int64_t>& indices) {
  for (std::size_t i = 0; i < uuids.size() && i < indices.size(); ++i) {
    const auto device = std::ranges::find(samples.devices, uuids[i], &DeviceSamples::uuid);
    if (device == samples.devices.end() || !device->runtime_index) continue;
    if (*device->runtime_index != indices[i]) return true;
  }
  return false;
}

AccountedUse accounted_use(std::span<const AccountedProcess> processes,
                           std::span<const std::uint32_t> outsiders, std::int64_t begun_us,
                           std::int64_t ended_us) {
  constexpr std::int64_t kInMillisecond = 1000;
  std::vector<Life> lives;
  bool all_tell = true;
  bool all_tell_use = true;
  double busy_us = 0;
  for (const AccountedProcess& process : processes) {
    if (process.started_us < begun_us || process.started_us > ended_us ||
        std::ranges::find(outsiders, process.pid) != outsiders.end())
      continue;
    const auto lasted_us = static_cast<std::int64_t>(
        std::min<std::uint64_t>(process.lasted_ms, static_cast<std::uint64_t>(ended_us) / kInMillisecond) *
        kInMillisecond);
    const std::int64_t end = process.runs ? ended_us : std::min(ended_us, process.started_us + lasted_us);
    all_tell = all_tell && process.peak_bytes.has_value();
    all_tell_use = all_tell_use && process.use_percent.has_value();
    // A process that began and ended at once has lived too.
    lives.push_back(
        {process.started_us, std::max(end, process.started_us + 1), process.peak_bytes.value_or(0)});
    busy_us += static_cast<double>(end - process.started_us) * process.use_percent.value_or(0) / kPercent;
  }
  AccountedUse use;
  if (lives.empty()) return use;
  if (all_tell) use.peak_bytes = highest_sum(lives);
  if (all_tell_use && ended_us > begun_us)
    use.use_percent = static_cast<unsigned>(
        std::min<double>(kPercent, kPercent * busy_us / static_cast<double>(ended_us - begun_us)));
  return use;
}

std::string encode_sampled_lease(const SampledLease& lease) {
  return kSampledLease.encode(lease);
}

Result<SampledLease> decode_sampled_lease(std::string_view text) {
  return kSampledLease.decode(text);
}

std::string encode_run_samples(const RunSamples& samples) {
  return kRunSamples.encode(samples);
}

Result<RunSamples> decode_run_samples(std::string_view text) {
  return kRunSamples.decode(text);
}

}  // namespace berth
