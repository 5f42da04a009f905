#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "machine/parse_parts.h"

namespace berth::sim {
namespace {

constexpr unsigned kDevicesPerDomain = 28;

struct ThrottleName {
  std::string_view name;
  std::uint64_t bit;
};
constexpr ThrottleName kThrottles[] = {
    {"gpu_idle", 0x1},    {"app_clocks", 0x2},      {"sw_power_cap", 0x4},
    {"hw_slowdown", 0x8}, {"sync_boost", 0x10},     {"sw_thermal", 0x20},
    {"hw_thermal", 0x40}, {"hw_power_brake", 0x80}, {"display_clock", 0x100},
};

void apply_model(Device& device, const Generation& generation) {
  const Model& model = device.model;
  device.name = model.name;
  if (!generation.prefixed_names() && device.name.starts_with("NVIDIA "))
    device.name.erase(0, std::strlen("NVIDIA "));
  device.memory_bytes = model.memory_mib * kMiB;
  device.reserved_bytes = model.reserved_mib * kMiB;
  device.context_bytes = 400 * kMiB;
  device.temperature = model.idle_temperature;
  device.power_mw = model.idle_power_w * 1000;
  device.power_limit_mw = model.power_limit_w * 1000;
  device.ecc = model.ecc;
  device.pstate = model.serial ? 0 : 8;
  device.sm_clock_mhz = model.serial ? model.max_sm_mhz : 210;
  device.memory_clock_mhz = model.serial ? model.max_memory_mhz : 405;
  if (!model.fan) device.refuse(Reading::fan);
  if (!model.serial) device.refuse(Reading::serial);
  if (!model.ecc) device.refuse(Reading::ecc);
  if (!model.mig) device.refuse(Reading::mig);
  if (model.architecture < 7 || !model.ecc) device.refuse(Reading::remapped);
  if (model.architecture >= 7 || !model.ecc) device.refuse(Reading::retired);
  if (model.architecture < 5) device.refuse(Reading::energy);
  if (model.memory == Memory::unified) {
    device.refuse(Reading::memory);
    device.refuse(Reading::power_limit);
    device.refuse(Reading::bar1);
  }
}

// Positions that repeat for every device of a table, so that eight equal lines give eight distinct
// devices.
void apply_index(Device& device, unsigned index) {
  const std::string seed = std::string(device.model.key) + "/" + std::to_string(index);
  device.uuid = "GPU-" + uuid_text(seed);
  device.serial = std::to_string(1320000000000ULL + hash_text(seed, 3) % 9999999999ULL);
  const unsigned first_domain = device.model.memory == Memory::unified ? 0xF : 0;
  device.pci = {first_domain + index / kDevicesPerDomain, 1 + index % kDevicesPerDomain * 9, 0};
  device.minor = index;
  device.numa_node = index / 4;
}

bool parse_pci(std::string_view text, PciAddress& pci) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  int used = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &used) != 4 ||
      static_cast<std::size_t>(used) != copy.size() || function != 0)
    return false;
  pci = {domain, bus, slot};
  return true;
}

void parse_identity(Table& table, Device& device) {
  table.set("name", device.name);
  table.set("minor", device.minor, 65535);
  table.set("numa_node", device.numa_node, 1023);
  if (auto serial = table.text("serial")) {
    device.serial = *serial;
    device.allow(Reading::serial);
  }
  if (auto uuid = table.text("uuid")) {
    if (!uuid->starts_with("GPU-") || uuid->size() > 79) table.wrong("uuid", "\"uuid\" must begin with GPU-");
    device.uuid = *uuid;
  }
  if (auto pci = table.text("pci"); pci && !parse_pci(*pci, device.pci))
    table.wrong("pci", "\"pci\" must be written as \"0000:07:00.0\"");
  if (device.name.size() > 95) table.wrong("name", "\"name\" is longer than the driver allows (95)");
}

void parse_mib(Table& table, std::string_view key, std::uint64_t& bytes) {
  if (auto mib = table.integer(key, 0, 1LL << 40)) bytes = static_cast<std::uint64_t>(*mib) * kMiB;
}

void parse_memory(Table& table, Device& device) {
  parse_mib(table, "memory_mib", device.memory_bytes);
  parse_mib(table, "reserved_mib", device.reserved_bytes);
  parse_mib(table, "hidden_mib", device.hidden_bytes);
  parse_mib(table, "context_mib", device.context_bytes);
  // Drivers of parts without memory of their own have been seen to refuse, to say zero, and to say
  // the system's.
  if (auto answer = table.one_of("unified_memory", {"unsupported", "zero", "system"})) {
    device.refuse(Reading::memory);
    if (*answer != 0) device.allow(Reading::memory);
    if (*answer == 1) device.memory_bytes = device.reserved_bytes = 0;
    if (*answer == 2)
      device.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  if (device.reserved_bytes > device.memory_bytes)
    table.wrong("reserved_mib", "\"reserved_mib\" is more than the device has");
}

void parse_readings(Table& table, Device& device) {
  table.set("utilization", device.utilization, 100);
  table.set("memory_utilization", device.memory_utilization, 100);
  table.set("temperature", device.temperature, 150);
  table.set("fan", device.fan_percent, 200);
  table.set("pstate", device.pstate, 32);
  table.set("sm_clock_mhz", device.sm_clock_mhz, 10000);
  table.set("memory_clock_mhz", device.memory_clock_mhz, 30000);
  if (auto watts = table.number("power_w", 0, 5000)) device.power_mw = static_cast<unsigned>(*watts * 1000);
  if (auto watts = table.number("power_limit_w", 0, 5000))
    device.power_limit_mw = static_cast<unsigned>(*watts * 1000);
  if (const toml::array* reasons = table.array("throttle"))
    for (const toml::node& node : *reasons) {
      const auto* text = node.as_string();
      const ThrottleName* found = nullptr;
      for (const ThrottleName& entry : kThrottles)
        if (text != nullptr && text->get() == entry.name) found = &entry;
      if (found == nullptr)
        table.wrong(node, "unknown throttle reason");
      else
        device.throttle_reasons |= found->bit;
    }
}

void parse_modes(Table& table, Device& device) {
  if (auto mode =
          table.one_of("compute_mode", {"default", "exclusive_thread", "prohibited", "exclusive_process"}))
    device.compute_mode = *mode;
  table.set("persistence", device.persistence);
  table.set("display_active", device.display_active);
  device.display_connected = device.display_active;
  table.set("display_connected", device.display_connected);
}

void parse_health(Table& table, Device& device) {
  table.set("ecc", device.ecc);
  table.set("ecc_corrected", device.ecc_corrected, INT64_MAX);
  table.set("ecc_uncorrected", device.ecc_uncorrected, INT64_MAX);
  table.set("remapped_corrected", device.remapped_corrected, 100000);
  table.set("remapped_uncorrected", device.remapped_uncorrected, 100000);
  table.set("remap_pending", device.remap_pending);
  table.set("remap_failure", device.remap_failure);
  table.set("retired_single", device.retired_single, 64);
  table.set("retired_double", device.retired_double, 64);
  table.set("retired_pending", device.retired_pending);
  table.set("lost", device.lost);
  if (auto action =
          table.one_of("recovery_action", {"none", "reset", "reboot", "drain_p2p", "drain_and_reset"}))
    device.recovery_action = *action;
  if (const toml::array* numbers = table.array("xid_events"))
    for (const toml::node& node : *numbers) {
      const auto number = node.value<std::int64_t>();
      if (number && *number > 0 && *number < 1000)
        device.xid_events.push_back(static_cast<unsigned>(*number));
      else
        table.wrong(node, "an Xid is a number from 1 to 999");
    }
  if (auto result = table.integer("handle_result", 0, 999)) device.handle_result = static_cast<int>(*result);
}

void parse_unsupported(Table& table, Device& device) {
  const toml::array* names = table.array("unsupported");
  if (names == nullptr) return;
  for (const toml::node& node : *names) {
    const auto* text = node.as_string();
    const std::optional<Reading> reading = text != nullptr ? reading_named(text->get()) : std::nullopt;
    if (reading)
      device.refuse(*reading);
    else
      table.wrong(node, "unknown reading in \"unsupported\"");
  }
}

void parse_accounting(Table& table, Problems& problems, Device& device) {
  table.set("accounting", device.accounting);
  for (const toml::table* source : table.tables("accounted")) {
    Table entry(*source, problems, "[[device.accounted]]");
    Accounted process;
    if (auto pid = entry.integer("pid", 1, UINT32_MAX))
      process.pid = *pid;
    else
      entry.wrong("[[device.accounted]] needs \"pid\"");
    entry.set("utilization", process.utilization, 100);
    entry.set("memory_utilization", process.memory_utilization, 100);
    parse_mib(entry, "peak_mib", process.peak_bytes);
    entry.set("started_us", process.started_us, INT64_MAX);
    entry.set("lasted_ms", process.lasted_ms, INT64_MAX);
    entry.finish();
    device.accounted.push_back(process);
  }
}

std::optional<Model> parse_model(Table& table) {
  const std::optional<std::string> key = table.text("model");
  if (!key) {
    if (!table.has("model")) table.wrong("[[device]] needs \"model\"");
    return std::nullopt;
  }
  if (const Model* model = model_named(*key)) return *model;
  table.wrong("model", "unknown model \"" + *key + "\" (berth-sim --list-models)");
  return std::nullopt;
}

void parse_body(Table& table, Problems& problems, const Generation& generation, Device& device) {
  parse_identity(table, device);
  parse_memory(table, device);
  parse_readings(table, device);
  parse_modes(table, device);
  parse_health(table, device);
  parse_unsupported(table, device);
  parse_instances(table, generation, device);
  parse_processes(table, problems, device);
  parse_accounting(table, problems, device);
}

}  // namespace

void parse_device(const toml::table& source, Problems& problems, const Generation& generation,
                  std::vector<Device>& devices) {
  Table table(source, problems, "[[device]]");
  const auto count = table.integer("count", 1, 256).value_or(1);
  const std::optional<Model> model = parse_model(table);
  if (!model) return;
  for (std::string_view own : {"uuid", "pci", "serial", "minor"})
    if (count > 1 && table.has(own))
      table.wrong(own, "\"" + std::string(own) + "\" cannot be shared by several devices");
  for (std::int64_t i = 0; i < count && !problems.any(); ++i) {
    Device& device = devices.emplace_back();
    device.model = *model;
    apply_model(device, generation);
    apply_index(device, static_cast<unsigned>(devices.size() - 1));
    parse_body(table, problems, generation, device);
  }
  table.finish();
}

}  // namespace berth::sim
