#include "berth/device/device_readings.h"

#include <array>

namespace berth {
namespace {

constexpr bool kStatic = true;
constexpr bool kNotOnMig = false;
using D = Device;
using F = FieldKind;
using K = ReadingKind;

// After a new row, run `./dev readings`.
constexpr std::array kReadings{
    DeviceReading{.name = "vendor",
                  .member = &D::vendor,
                  .is_static = kStatic,
                  .expression = "vendor",
                  .help = "Who makes the device: nvidia or amd."},
    DeviceReading{.name = "index",
                  .member = &D::index,
                  .kind = F::number,
                  .is_static = kStatic,
                  .expression = "index",
                  .help = "The number of the device. Berth counts the NVIDIA devices first, in the order "
                          "of their driver, and then the AMD devices. A MIG instance has the number "
                          "of its GPU."},
    DeviceReading{.name = "uuid",
                  .member = &D::uuid,
                  .is_static = kStatic,
                  .expression = "uuid",
                  .help = "The UUID of the device. Only a device that does not answer has none."},
    DeviceReading{.name = "name",
                  .member = &D::name,
                  .readings = K::name,
                  .is_static = kStatic,
                  .expression = "name",
                  .help = "The model, as the driver calls it."},
    DeviceReading{.name = "pci_bus_id",
                  .member = &D::pci_bus_id,
                  .readings = K::pci,
                  .is_static = kStatic,
                  .expression = "pci",
                  .title = "PCI bus",
                  .help = "The PCI address, as in sysfs: 0000:07:00.0."},
    DeviceReading{
        .name = "mig_enabled",
        .member = &D::mig_enabled,
        .kind = F::truth,
        .readings = K::mig,
        .help = "Whether the GPU is split into MIG instances. Then the GPU as a whole cannot be used."},
    DeviceReading{
        .name = "state", .member = &D::state, .help = "Whether the device answers, and if not, why."},
    DeviceReading{.name = "state_reason",
                  .member = &D::state_reason,
                  .help = "What the driver says, if the device does not answer."},
    DeviceReading{.name = "compute_capability",
                  .member = &D::compute_capability,
                  .kind = F::version,
                  .readings = K::capability,
                  .is_static = kStatic,
                  .expression = "cc",
                  .title = "Capability",
                  .help = "Which CUDA code the device can run."},
    DeviceReading{.name = "compute_mode",
                  .member = &D::compute_mode,
                  .readings = K::compute_mode,
                  .help = "How many processes may compute on the device."},
    DeviceReading{.name = "persistence",
                  .member = &D::persistence,
                  .kind = F::truth,
                  .readings = K::modes,
                  .on_mig = kNotOnMig,
                  .help = "Whether the driver stays loaded while no program uses it."},
    DeviceReading{.name = "display_active",
                  .member = &D::display_active,
                  .kind = F::truth,
                  .readings = K::modes,
                  .on_mig = kNotOnMig,
                  .help = "Whether the device draws a display."},

    DeviceReading{.name = "kind",
                  .member = &Memory::kind,
                  .is_static = kStatic,
                  .help = "Whether the device has memory of its own, or uses the system's."},
    DeviceReading{.name = "total_bytes",
                  .member = &Memory::total_bytes,
                  .kind = F::bytes,
                  .readings = K::memory,
                  .is_static = kStatic,
                  .expression = "total",
                  .metric = "device_memory_size_bytes",
                  .help = "Memory of the device."},
    DeviceReading{.name = "used_bytes",
                  .member = &Memory::used_bytes,
                  .kind = F::bytes,
                  .readings = K::memory,
                  .expression = "used",
                  .metric = "device_memory_used_bytes",
                  .help = "Memory in use, without the driver's reserve."},
    DeviceReading{.name = "free_bytes",
                  .member = &Memory::free_bytes,
                  .kind = F::bytes,
                  .readings = K::memory,
                  .metric = "device_memory_free_bytes",
                  .help = "Memory that nobody uses, as the driver says. `--free` counts differently."},
    DeviceReading{.name = "reserved_bytes",
                  .member = &Memory::reserved_bytes,
                  .kind = F::bytes,
                  .readings = K::memory,
                  .metric = "device_memory_reserved_bytes",
                  .help = "Memory that the driver keeps for itself."},

    DeviceReading{.name = "utilization_percent",
                  .member = &D::utilization_percent,
                  .kind = F::percent,
                  .readings = K::utilization,
                  .on_mig = kNotOnMig,
                  .expression = "util",
                  .metric = "device_utilization_ratio",
                  .column = {"UTIL", 3},
                  .help = "Share of the driver's last sample in which a kernel ran."},
    DeviceReading{.name = "memory_utilization_percent",
                  .member = &D::memory_utilization_percent,
                  .kind = F::percent,
                  .readings = K::utilization,
                  .on_mig = kNotOnMig,
                  .expression = "mem_util",
                  .metric = "device_memory_utilization_ratio",
                  .help = "Share of the driver's last sample in which memory was read or written."},
    DeviceReading{.name = "temperature_c",
                  .member = &D::temperature_c,
                  .kind = F::celsius,
                  .readings = K::temperature,
                  .on_mig = kNotOnMig,
                  .expression = "temp",
                  .metric = "device_temperature_celsius",
                  .column = {"TEMP", 2},
                  .title = "Temperature",
                  .help = "Temperature of the GPU."},
    DeviceReading{.name = "power_mw",
                  .member = &D::power_mw,
                  .kind = F::watts,
                  .readings = K::power,
                  .on_mig = kNotOnMig,
                  .expression = "power",
                  .metric = "device_power_watts",
                  .column = {"POWER", 1},
                  .help = "Power drawn."},
    DeviceReading{.name = "power_limit_mw",
                  .member = &D::power_limit_mw,
                  .kind = F::watts,
                  .readings = K::power,
                  .on_mig = kNotOnMig,
                  .expression = "power_limit",
                  .metric = "device_power_limit_watts",
                  .help = "Power that the device may draw."},
    DeviceReading{.name = "sm_clock_mhz",
                  .member = &D::sm_clock_mhz,
                  .kind = F::megahertz,
                  .readings = K::clocks,
                  .on_mig = kNotOnMig,
                  .expression = "sm_clock",
                  .metric = "device_sm_clock_hertz",
                  .title = "Clock",
                  .help = "Clock of the processors."},
    DeviceReading{.name = "memory_clock_mhz",
                  .member = &D::memory_clock_mhz,
                  .kind = F::megahertz,
                  .readings = K::clocks,
                  .on_mig = kNotOnMig,
                  .expression = "mem_clock",
                  .metric = "device_memory_clock_hertz",
                  .help = "Clock of the memory."},
    DeviceReading{.name = "fan_percent",
                  .member = &D::fan_percent,
                  .kind = F::percent,
                  .readings = K::fan,
                  .on_mig = kNotOnMig,
                  .expression = "fan",
                  .metric = "device_fan_speed_ratio",
                  .title = "Fan",
                  .help = "Fan speed, as a share of the highest speed."},
    DeviceReading{.name = "performance_state",
                  .member = &D::performance_state,
                  .kind = F::number,
                  .readings = K::modes,
                  .on_mig = kNotOnMig,
                  .help = "The P-state of the driver: 0 is P0, the fastest."},
    DeviceReading{.name = "throttle_reasons",
                  .member = &D::throttle_reasons,
                  .kind = F::number,
                  .readings = K::modes,
                  .on_mig = kNotOnMig,
                  .help = "Why the driver slows the clocks, as its bits."},
    DeviceReading{.name = "pcie_generation",
                  .member = &D::pcie_generation,
                  .kind = F::number,
                  .readings = K::modes,
                  .on_mig = kNotOnMig,
                  .help = "Generation of the PCIe link as it is now."},
    DeviceReading{.name = "pcie_width",
                  .member = &D::pcie_width,
                  .kind = F::number,
                  .readings = K::modes,
                  .on_mig = kNotOnMig,
                  .help = "Lanes of the PCIe link as it is now."},

    DeviceReading{.name = "row_remap_failed",
                  .member = &Health::row_remap_failed,
                  .kind = F::truth,
                  .readings = K::health,
                  .on_mig = kNotOnMig,
                  .metric = "device_row_remap_failed",
                  .help = "Whether a row of memory is broken and could not be replaced."},
    DeviceReading{.name = "row_remap_pending",
                  .member = &Health::row_remap_pending,
                  .kind = F::truth,
                  .readings = K::health,
                  .on_mig = kNotOnMig,
                  .metric = "device_row_remap_pending",
                  .help = "Whether a reset is needed to replace a broken row of memory."},
    DeviceReading{.name = "ecc_uncorrected",
                  .member = &Health::ecc_uncorrected,
                  .kind = F::number,
                  .readings = K::health,
                  .on_mig = kNotOnMig,
                  .metric = "device_ecc_uncorrected_errors_total",
                  .help = "Memory errors since the driver was loaded that were not corrected."},
    DeviceReading{.name = "retired_pages_pending",
                  .member = &Health::retired_pages_pending,
                  .kind = F::truth,
                  .readings = K::health,
                  .on_mig = kNotOnMig,
                  .help = "Whether a reset is needed to retire broken pages of memory."},
    DeviceReading{.name = "recovery_action",
                  .member = &Health::recovery_action,
                  .readings = K::health,
                  .on_mig = kNotOnMig,
                  .help = "What the driver asks for before the device is used again: none, reset, reboot, "
                          "drain, drain_and_reset, or a word or number that no job is refused for."},
    DeviceReading{.name = "last_xid",
                  .member = &Health::last_xid,
                  .kind = F::number,
                  .readings = K::xid,
                  .on_mig = kNotOnMig,
                  .metric = "device_last_xid",
                  .help = "The last Xid of the device in the log of the kernel, but an Xid of an application "
                          "only if there is no other; 0 if there is none. Often only root may read the log. "
                          "Else an agent tells an Xid that came while it looked."},
};

// A record has all of them in one section.
consteval bool are_names_unique() {
  for (std::size_t i = 0; i < kReadings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (kReadings[i].name == kReadings[j].name) return false;
    }
  }
  return true;
}
static_assert(are_names_unique());

struct AsNumber {
  template <class T>
  Reading<double> operator()(const T& value) const {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(value);
    else
      return std::nullopt;
  }
  template <class T>
  Reading<double> operator()(const Reading<T>& value) const {
    return value ? (*this)(*value) : std::nullopt;
  }
};

struct AsText {
  template <class T>
  Reading<std::string_view> operator()(const T& value) const {
    if constexpr (requires { to_text(value); })
      return to_text(value);
    else
      return std::nullopt;
  }
  Reading<std::string_view> operator()(const std::string& value) const {
    return value.empty() ? std::nullopt : Reading<std::string_view>(value);
  }
  template <class T>
  Reading<std::string_view> operator()(const Reading<T>& value) const {
    return value ? (*this)(*value) : std::nullopt;
  }
};

struct PartOf {
  template <class T>
  std::string_view operator()(T Device::*) const {
    return "";
  }
  template <class T>
  std::string_view operator()(T Memory::*) const {
    return "memory";
  }
  template <class T>
  std::string_view operator()(T Health::*) const {
    return "health";
  }
};

}  // namespace

std::span<const DeviceReading> device_readings() {
  return kReadings;
}

const DeviceReading* find_reading(std::string_view name, std::size_t& next) {
  for (std::size_t i = 0; i < kReadings.size(); ++i) {
    const std::size_t at = next + i < kReadings.size() ? next + i : next + i - kReadings.size();
    if (kReadings[at].name != name) continue;
    next = at + 1;
    return &kReadings[at];
  }
  return nullptr;
}

std::string_view part_of(const DeviceReading& reading) {
  return std::visit(PartOf(), reading.member);
}

Reading<double> number_of(const DeviceReading& reading, const Device& device) {
  const Reading<double> stored = with_value(reading, device, AsNumber());
  // Kept in milliwatts, as drivers tell it.
  return stored && reading.kind == FieldKind::watts ? Reading<double>(*stored / 1000) : stored;
}

Reading<std::string_view> text_of(const DeviceReading& reading, const Device& device) {
  return with_value(reading, device, AsText());
}

}  // namespace berth
