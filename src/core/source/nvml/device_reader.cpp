#include "berth/source/nvml/device_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "berth/device/device.h"
#include "berth/source/nvml/library.h"
#include "berth/source/nvml/process_list.h"
#include "berth/source/unified_memory.h"

namespace berth::nvml {
namespace {

/// Asks for one device's readings and keeps its state. Once a call says that the device is gone, no
/// other is made: each could hang.
class Questions {
 public:
  Questions(Library& library, Handle handle, Device& device)
      : library_(library), handle_(handle), device_(device) {}

  bool answers() const { return device_.state == DeviceState::ok; }

  /// True if the reading is there.
  template <class... Parameters, class... Arguments>
  bool ask(Entry<Handle, Parameters...>& entry, Arguments... arguments) {
    return note(answers() ? library_.call(entry, handle_, arguments...) : kGpuIsLost);
  }

  template <class T>
  Reading<T> number(Entry<Handle, T*>& entry) {
    T value{};
    return ask(entry, &value) ? Reading<T>(value) : std::nullopt;
  }
  Reading<unsigned> number(Entry<Handle, unsigned, unsigned*>& entry, unsigned which) {
    unsigned value = 0;
    return ask(entry, which, &value) ? Reading<unsigned>(value) : std::nullopt;
  }
  Reading<bool> flag(Entry<Handle, unsigned*>& entry) {
    const auto value = number(entry);
    return value ? Reading<bool>(*value != 0) : std::nullopt;
  }
  std::string text(Entry<Handle, char*, unsigned>& entry) {
    Text buffer{};
    if (!ask(entry, buffer.data(), kTextBytes)) return {};
    return {buffer.data(), std::find(buffer.begin(), buffer.end(), '\0')};
  }

  /// Takes what a call returned. True if it succeeded.
  bool note(Return outcome) {
    last_ = outcome;
    const auto state = state_of(outcome);
    if (state && answers()) fail(*state);
    return outcome == kSuccess;
  }
  /// Ends the questions, for the reason of the last call.
  void fail(DeviceState state) {
    device_.state = state;
    device_.state_reason = words_of(last_);
  }

  Return last() const { return last_; }
  Library& library() { return library_; }
  Handle handle() const { return handle_; }
  Device& device() { return device_; }

 private:
  Library& library_;
  Handle handle_;
  Device& device_;
  Return last_ = kSuccess;
};

Reading<std::uint64_t> present(std::uint64_t bytes) {
  return bytes == kAbsent64 ? std::nullopt : Reading<std::uint64_t>(bytes);
}

void read_unified_memory(Questions& questions) {
  Device& device = questions.device();
  const std::string name = device.name.empty() ? questions.text(questions.library().name) : device.name;
  if (source::is_integrated(name)) source::take_machine_memory(device);
}

void read_memory(Questions& questions) {
  Library& library = questions.library();
  Memory& memory = questions.device().memory;
  Memory2 v2{.version = version_stamp<Memory2>(2), .total = 0, .reserved = 0, .free = 0, .used = 0};
  if (questions.ask(library.memory_v2, &v2)) {
    memory = {.total_bytes = present(v2.total),
              .used_bytes = present(v2.used),
              .free_bytes = present(v2.free),
              .reserved_bytes = present(v2.reserved)};
  } else if (questions.answers() && wants_older_form(questions.last())) {
    Memory1 v1{};
    if (questions.ask(library.memory, &v1)) {
      memory = {.total_bytes = present(v1.total),
                .used_bytes = present(v1.used),
                .free_bytes = present(v1.free),
                .reserved_bytes = std::nullopt};
    }
  }
  const bool said_nothing =
      questions.last() == kNotSupported || memory.total_bytes == Reading<std::uint64_t>(0);
  if (memory.total_bytes == Reading<std::uint64_t>(0)) memory = {};
  if (questions.answers() && said_nothing) read_unified_memory(questions);
}

void read_listed_processes(Questions& questions) {
  if (!questions.answers()) return;
  Device& device = questions.device();
  Return outcome = kSuccess;
  device.processes = read_processes(questions.library(), questions.handle(), outcome);
  questions.note(outcome);
  source::take_use_from_processes(device);
}

void read_temperature(Questions& questions) {
  Library& library = questions.library();
  Temperature1 value{.version = version_stamp<Temperature1>(1), .sensor = kCoreSensor, .celsius = 0};
  if (questions.ask(library.temperature_v, &value)) {
    questions.device().temperature_c = value.celsius;
  } else if (const auto older = questions.number(library.temperature, kCoreSensor)) {
    questions.device().temperature_c = static_cast<int>(*older);
  }
}

void read_modes(Questions& questions) {
  Library& library = questions.library();
  Device& device = questions.device();
  constexpr unsigned kUnknownPerformanceState = 32;
  device.persistence = questions.flag(library.persistence);
  device.display_active = questions.flag(library.display_active);
  device.performance_state = questions.number(library.performance_state);
  if (device.performance_state >= kUnknownPerformanceState) device.performance_state.reset();
}

/// Values that are asked for together, in one call.
template <std::size_t count>
class FieldValues {
 public:
  /// Asks for the first `asked` of them.
  FieldValues(Questions& questions, const std::array<Field, count>& fields, std::size_t asked)
      : questions_(questions) {
    for (std::size_t i = 0; i < asked; ++i) values_[i].field = fields[i];
    told_ = questions.ask(questions.library().field_values, static_cast<int>(asked), values_.data());
  }

  /// nullopt: the driver or the device does not have it.
  Reading<std::uint64_t> number(Field field) {
    for (const FieldValue& each : values_) {
      if (each.field != field || !told_ || !questions_.note(each.result)) continue;
      if (each.type == kUnsigned64 || each.type == kUnsignedLong) return each.value;
      // The first bytes, which are the lower ones on the machines that the driver is for.
      static_assert(std::endian::native == std::endian::little);
      if (each.type == kUnsigned32) return each.value & kAbsent32;
    }
    return std::nullopt;
  }
  Reading<bool> flag(Field field) {
    const auto value = number(field);
    return value ? Reading<bool>(*value != 0) : std::nullopt;
  }

 private:
  Questions& questions_;
  std::array<FieldValue, count> values_{};
  bool told_ = false;
};

/// A single call has all that newer drivers tell. Values that are missing there are asked for as
/// before there was this call.
void read_health(Questions& questions, bool with_energy) {
  Library& library = questions.library();
  Health& health = questions.device().health;
  // The energy comes last: it alone takes an H100 4 to 7 ms, the others together 3.
  constexpr std::array<Field, 6> kFields{kUncorrectedSinceLoad, kRetiredPending, kRemapPending,
                                         kRemapFailed,          kRecoveryAction, kEnergySinceLoad};
  FieldValues<kFields.size()> values(questions, kFields, kFields.size() - (with_energy ? 0 : 1));
  health.row_remap_pending = values.flag(kRemapPending);
  health.row_remap_failed = values.flag(kRemapFailed);
  health.ecc_uncorrected = values.number(kUncorrectedSinceLoad);
  if (with_energy) questions.device().energy_mj = values.number(kEnergySinceLoad);
  if (const auto action = values.number(kRecoveryAction))
    health.recovery_action =
        recovery_word(static_cast<unsigned>(std::min<std::uint64_t>(*action, kAbsent32)));
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  const bool is_told = health.row_remap_pending && health.row_remap_failed;
  if (!is_told && questions.ask(library.remapped_rows, &corrected, &uncorrected, &pending, &failed)) {
    health.row_remap_pending = pending != 0;
    health.row_remap_failed = failed != 0;
  } else if (!is_told) {
    // GPUs before Ampere have retired pages instead.
    health.retired_pages_pending = values.flag(kRetiredPending);
    if (!health.retired_pages_pending) health.retired_pages_pending = questions.flag(library.retired_pending);
  }
  std::uint64_t errors = 0;
  if (!health.ecc_uncorrected &&
      questions.ask(library.ecc_errors, unsigned{kUncorrected}, unsigned{kSinceDriverLoad}, &errors)) {
    health.ecc_uncorrected = errors;
  }
}

/// The list may grow between the question for its length and that for its entries.
std::vector<unsigned> accounted_pids(Questions& questions) {
  constexpr unsigned kRoomForMore = 64;
  constexpr unsigned kMostProcesses = 1 << 14;
  unsigned count = 0;
  if (questions.ask(questions.library().accounting_pids, &count, static_cast<unsigned*>(nullptr)) ||
      questions.last() != kInsufficientSize)
    return {};
  count = std::min(count, kMostProcesses) + kRoomForMore;
  std::vector<unsigned> pids(count);
  if (!questions.ask(questions.library().accounting_pids, &count, pids.data())) return {};
  pids.resize(std::min<std::size_t>(count, pids.size()));
  return pids;
}

void read_accounting(Questions& questions) {
  Device& device = questions.device();
  if (questions.flag(questions.library().accounting_mode) != true) return;
  device.accounted.emplace();
  for (const unsigned pid : accounted_pids(questions)) {
    AccountingStats stats{};
    if (!questions.ask(questions.library().accounting_stats, pid, &stats)) continue;
    AccountedProcess& process = device.accounted->emplace_back();
    process.pid = pid;
    process.runs = stats.runs != 0;
    if (stats.gpu_percent != kAbsent32) process.use_percent = stats.gpu_percent;
    process.peak_bytes = present(stats.peak_bytes);
    process.started_us = static_cast<std::int64_t>(stats.started_us);
    process.lasted_ms = stats.lasted_ms;
  }
}

void read_energy(Questions& questions) {
  constexpr std::array<Field, 1> kFields{kEnergySinceLoad};
  FieldValues<kFields.size()> values(questions, kFields, kFields.size());
  questions.device().energy_mj = values.number(kEnergySinceLoad);
}

void read_compute_mode(Questions& questions) {
  const auto mode = questions.number(questions.library().compute_mode);
  if (mode && *mode <= static_cast<unsigned>(ComputeMode::exclusive_process)) {
    questions.device().compute_mode = static_cast<ComputeMode>(*mode);
  }
}

/// The constant facts of a GPU.
void read_identity(Questions& questions, ReadingSet readings) {
  Library& library = questions.library();
  Device& device = questions.device();
  device.uuid = questions.text(library.uuid);
  if (device.uuid.empty() && questions.answers()) questions.fail(DeviceState::failed);
  if (readings.has(ReadingKind::name)) device.name = questions.text(library.name);
  if (readings.has(ReadingKind::pci)) {
    Pci pci{};
    if (questions.ask(library.pci, &pci)) {
      device.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
    }
  }
  if (readings.has(ReadingKind::capability)) {
    int major = 0;
    int minor = 0;
    if (questions.ask(library.capability, &major, &minor))
      device.compute_capability = source::capability_of(major, minor);
  }
}

/// The readings of a whole GPU, which its MIG instances share.
void read_board(Questions& questions, ReadingSet readings) {
  Library& library = questions.library();
  Device& device = questions.device();
  if (readings.has(ReadingKind::power)) {
    device.power_mw = questions.number(library.power);
    device.power_limit_mw = questions.number(library.power_limit);
  }
  if (readings.has(ReadingKind::temperature)) read_temperature(questions);
  if (readings.has(ReadingKind::clocks)) {
    device.sm_clock_mhz = questions.number(library.clock, kSmClock);
    device.memory_clock_mhz = questions.number(library.clock, kMemoryClock);
  }
  if (readings.has(ReadingKind::fan)) device.fan_percent = questions.number(library.fan);
  if (readings.has(ReadingKind::modes)) read_modes(questions);
  if (readings.has(ReadingKind::modes) || readings.has(ReadingKind::throttle))
    device.throttle_reasons = questions.number(library.throttle_reasons);
  for (Library::PlainReading& plain : library.plain_readings) {
    if (readings.has(plain.asked_with)) device.*plain.member = questions.number(plain.entry);
  }
  const bool with_energy = readings.has(ReadingKind::energy);
  if (readings.has(ReadingKind::health))
    read_health(questions, with_energy);
  else if (with_energy)
    read_energy(questions);
  if (readings.has(ReadingKind::accounting)) read_accounting(questions);
}

void read_utilization(Questions& questions) {
  Utilization value{};
  if (!questions.ask(questions.library().utilization, &value)) return;
  Device& device = questions.device();
  if (value.gpu != kAbsent32) device.utilization_percent = value.gpu;
  if (value.memory != kAbsent32) device.memory_utilization_percent = value.memory;
}

/// The readings that a GPU and a MIG instance have each for itself.
void read_share(Questions& questions, ReadingSet readings) {
  if (readings.has(ReadingKind::memory)) read_memory(questions);
  if (readings.has(ReadingKind::processes)) read_listed_processes(questions);
  if (readings.has(ReadingKind::compute_mode)) read_compute_mode(questions);
}

/// The MIG instance in one slot. nullopt: the slot is empty.
std::optional<Device> read_instance(Questions& parent, unsigned slot, ReadingSet readings) {
  Library& library = parent.library();
  Handle handle = nullptr;
  const Return outcome = library.call(library.mig_handle, parent.handle(), slot, &handle);
  if (outcome == kNotFound || outcome == kInvalidArgument || outcome == kNotSupported) return std::nullopt;

  Device instance = parent.device();
  MigPlacement& placement = instance.mig.emplace();
  placement.parent_uuid = parent.device().uuid;
  placement.slot = slot;
  instance.uuid.clear();
  instance.name.clear();
  instance.mig_enabled.reset();
  instance.memory = {};
  instance.accounted.reset();
  Questions questions(library, handle, instance);
  if (!questions.note(outcome)) {
    if (questions.answers()) {
      questions.fail(outcome == kNoPermission ? DeviceState::not_permitted : DeviceState::failed);
    }
    return instance;
  }
  instance.uuid = questions.text(library.uuid);
  if (readings.has(ReadingKind::name)) instance.name = questions.text(library.name);
  placement.gpu_instance = questions.number(library.gpu_instance);
  placement.compute_instance = questions.number(library.compute_instance);
  read_share(questions, readings);
  return instance;
}

std::vector<Device> read_instances(Questions& parent, ReadingSet readings) {
  std::vector<Device> instances;
  // A GPU has seven; each that a driver makes up would be asked for.
  constexpr unsigned kMostSlots = 64;
  const unsigned slots = std::min(parent.number(parent.library().mig_slots).value_or(0), kMostSlots);
  for (unsigned slot = 0; slot < slots && parent.answers(); ++slot) {
    if (auto instance = read_instance(parent, slot, readings)) instances.push_back(std::move(*instance));
  }
  return instances;
}

}  // namespace

std::vector<Device> read_device(Library& library, unsigned index, ReadingSet readings,
                                const std::vector<std::string>& only) {
  std::vector<Device> devices(1);
  Device& gpu = devices.front();
  gpu.index = index;
  Handle handle = nullptr;
  Return found = library.call(library.handle, index, &handle);
  if (found == kUnknown) found = library.call(library.handle, index, &handle);
  Questions questions(library, handle, gpu);
  if (!questions.note(found)) {
    if (questions.answers()) {
      questions.fail(found == kNoPermission ? DeviceState::not_permitted : DeviceState::failed);
    }
    return devices;
  }

  read_identity(questions, readings);
  if (!only.empty() && std::ranges::find(only, gpu.uuid) == only.end()) return devices;
  if (readings.has(ReadingKind::mig)) {
    unsigned now = 0;
    unsigned after_reset = 0;
    if (questions.ask(library.mig_mode, &now, &after_reset)) gpu.mig_enabled = now == 1;
  }
  read_board(questions, readings);
  if (gpu.mig_enabled != true) {
    if (readings.has(ReadingKind::utilization)) read_utilization(questions);
    read_share(questions, readings);
    return devices;
  }
  // A split GPU does not tell its utilisation, and its processes only to root; each instance tells
  // its own.
  if (readings.has(ReadingKind::memory)) read_memory(questions);
  if (readings.has(ReadingKind::compute_mode)) read_compute_mode(questions);
  auto instances = read_instances(questions, readings);
  devices.insert(devices.end(), std::make_move_iterator(instances.begin()),
                 std::make_move_iterator(instances.end()));
  return devices;
}

}  // namespace berth::nvml
