// --query-gpu and --query-compute-apps.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "smi/report.h"

namespace berth::sim {
namespace {

struct Value {
  std::string text;
  bool available = true;
};

struct Field {
  const char* name;
  const char* unit;  // "" if none; shown behind the value and in the header
  Value (*value)(const Cards&, const Card&);
  int least_branch = 0;
  int most_branch = 9999;
};

Value number(std::uint64_t value, bool available = true) {
  return {std::to_string(value), available};
}
Value watts(unsigned milliwatts, bool available) {
  return {line("%u.%02u", milliwatts / 1000, milliwatts % 1000 / 10), available};
}
Value enabled(bool on, bool available = true) {
  return {on ? "Enabled" : "Disabled", available};
}
bool has(const Card& card, Reading reading) {
  return card.device->supports(reading);
}
bool has_utilization(const Card& card) {
  return has(card, Reading::utilization) && !card.device->mig_enabled;
}

const char* compute_mode(const Device& device) {
  constexpr const char* kModes[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
  return kModes[device.compute_mode];
}

const char* recovery(const Device& device) {
  constexpr const char* kActions[] = {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"};
  return kActions[device.recovery_action];
}

std::string now_text() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char text[40];
  const std::size_t length = strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &local);
  return std::string(text, length) + line(".%03ld", now.tv_nsec / 1'000'000);
}

std::uint64_t reasons(const Device& device) {
  return device.throttle_reasons != 0 || device.utilization != 0 ? device.throttle_reasons : 1;
}

#define SIM_FIELD(EXPRESSION)                         \
  [](const Cards& cards, const Card& card) -> Value { \
    const Device& device = *card.device;              \
    (void)cards, (void)device;                        \
    return EXPRESSION;                                \
  }

const Field kFields[] = {
    {"timestamp", "", SIM_FIELD(Value{now_text()})},
    {"driver_version", "", SIM_FIELD(Value{cards.scenario->driver_version()})},
    {"count", "", SIM_FIELD(number(cards.scenario->devices.size()))},
    {"index", "", SIM_FIELD(number(card.index))},
    {"name", "", SIM_FIELD((Value{device.name, has(card, Reading::name)}))},
    {"uuid", "", SIM_FIELD((Value{device.uuid, has(card, Reading::uuid)}))},
    {"serial", "", SIM_FIELD((Value{device.serial, has(card, Reading::serial)}))},
    {"pci.bus_id", "", SIM_FIELD(Value{pci_text(device.pci, 8)})},
    {"pci.domain", "", SIM_FIELD(Value{line("0x%04X", device.pci.domain)})},
    {"pci.bus", "", SIM_FIELD(Value{line("0x%02X", device.pci.bus)})},
    {"pci.device", "", SIM_FIELD(Value{line("0x%02X", device.pci.device)})},
    {"compute_cap", "", SIM_FIELD(Value{line("%d.%d", device.model.major, device.model.minor)}), 495},
    {"compute_mode", "", SIM_FIELD((Value{compute_mode(device), has(card, Reading::compute_mode)}))},
    {"persistence_mode", "", SIM_FIELD(enabled(device.persistence, has(card, Reading::persistence)))},
    {"display_mode", "", SIM_FIELD(enabled(device.display_connected, has(card, Reading::display)))},
    {"display_active", "", SIM_FIELD(enabled(device.display_active, has(card, Reading::display)))},
    {"memory.total", "MiB", SIM_FIELD(number(card.total_mib, has(card, Reading::memory)))},
    {"memory.reserved", "MiB", SIM_FIELD(number(card.reserved_mib, has(card, Reading::memory))), 510},
    {"memory.used", "MiB", SIM_FIELD(number(card.used_mib, has(card, Reading::memory)))},
    {"memory.free", "MiB", SIM_FIELD(number(card.free_mib, has(card, Reading::memory)))},
    {"utilization.gpu", "%", SIM_FIELD(number(device.utilization, has_utilization(card)))},
    {"utilization.memory", "%", SIM_FIELD(number(device.memory_utilization, has_utilization(card)))},
    {"temperature.gpu", "", SIM_FIELD(number(device.temperature, has(card, Reading::temperature)))},
    {"temperature.memory", "",
     SIM_FIELD(number(device.temperature + 8, device.model.ecc&& has(card, Reading::temperature)))},
    {"power.draw", "W", SIM_FIELD(watts(device.power_mw, has(card, Reading::power)))},
    {"power.limit", "W", SIM_FIELD(watts(device.power_limit_mw, has(card, Reading::power_limit)))},
    {"enforced.power.limit", "W", SIM_FIELD(watts(device.power_limit_mw, has(card, Reading::power_limit)))},
    {"power.default_limit", "W",
     SIM_FIELD(watts(device.model.power_limit_w * 1000, has(card, Reading::power_limit)))},
    {"power.max_limit", "W",
     SIM_FIELD(watts(device.model.power_limit_w * 1000, has(card, Reading::power_limit)))},
    {"clocks.current.graphics", "MHz", SIM_FIELD(number(device.sm_clock_mhz, has(card, Reading::clocks)))},
    {"clocks.current.sm", "MHz", SIM_FIELD(number(device.sm_clock_mhz, has(card, Reading::clocks)))},
    {"clocks.current.memory", "MHz", SIM_FIELD(number(device.memory_clock_mhz, has(card, Reading::clocks)))},
    {"clocks.max.graphics", "MHz", SIM_FIELD(number(device.model.max_sm_mhz, has(card, Reading::clocks)))},
    {"clocks.max.sm", "MHz", SIM_FIELD(number(device.model.max_sm_mhz, has(card, Reading::clocks)))},
    {"clocks.max.memory", "MHz", SIM_FIELD(number(device.model.max_memory_mhz, has(card, Reading::clocks)))},
    {"pstate", "", SIM_FIELD((Value{line("P%u", device.pstate), has(card, Reading::pstate)}))},
    {"fan.speed", "%", SIM_FIELD(number(device.fan_percent, has(card, Reading::fan)))},
    {"pcie.link.gen.current", "", SIM_FIELD(number(device.model.pcie_generation, has(card, Reading::pcie)))},
    {"pcie.link.gen.max", "", SIM_FIELD(number(device.model.pcie_generation, has(card, Reading::pcie)))},
    {"pcie.link.width.current", "", SIM_FIELD(number(16, has(card, Reading::pcie)))},
    {"pcie.link.width.max", "", SIM_FIELD(number(16, has(card, Reading::pcie)))},
    {"mig.mode.current", "", SIM_FIELD(enabled(device.mig_enabled, has(card, Reading::mig)))},
    {"mig.mode.pending", "", SIM_FIELD(enabled(device.mig_enabled, has(card, Reading::mig)))},
    {"ecc.mode.current", "", SIM_FIELD(enabled(device.ecc, has(card, Reading::ecc)))},
    {"ecc.mode.pending", "", SIM_FIELD(enabled(device.ecc, has(card, Reading::ecc)))},
    {"ecc.errors.corrected.volatile.total", "",
     SIM_FIELD(number(device.ecc_corrected, device.ecc&& has(card, Reading::ecc)))},
    {"ecc.errors.uncorrected.volatile.total", "",
     SIM_FIELD(number(device.ecc_uncorrected, device.ecc&& has(card, Reading::ecc)))},
    {"retired_pages.single_bit_ecc.count", "",
     SIM_FIELD(number(device.retired_single, has(card, Reading::retired)))},
    {"retired_pages.double_bit.count", "",
     SIM_FIELD(number(device.retired_double, has(card, Reading::retired)))},
    {"retired_pages.pending", "",
     SIM_FIELD((Value{device.retired_pending ? "Yes" : "No", has(card, Reading::retired)}))},
    {"gpu_recovery_action", "", SIM_FIELD(Value{recovery(device)}), 570},
    {"clocks_throttle_reasons.active", "",
     SIM_FIELD((Value{line("0x%016llx", static_cast<unsigned long long>(reasons(device))),
                      has(card, Reading::throttle)})),
     0, 534},
    {"clocks_event_reasons.active", "",
     SIM_FIELD((Value{line("0x%016llx", static_cast<unsigned long long>(reasons(device))),
                      has(card, Reading::throttle)})),
     535},
};

struct Alias {
  const char* name;
  const char* canonical;
};

constexpr Alias kAliases[] = {
    {"gpu_name", "name"},
    {"gpu_uuid", "uuid"},
    {"gpu_bus_id", "pci.bus_id"},
    {"gpu_serial", "serial"},
    {"clocks.sm", "clocks.current.sm"},
    {"clocks.gr", "clocks.current.graphics"},
    {"clocks.mem", "clocks.current.memory"},
    {"clocks.max.gr", "clocks.max.graphics"},
    {"clocks.max.mem", "clocks.max.memory"},
};

const Field* field_named(std::string_view name, int branch) {
  for (const Alias& alias : kAliases)
    if (name == alias.name) name = alias.canonical;
  for (const Field& field : kFields)
    if (name == field.name && branch >= field.least_branch && branch <= field.most_branch) return &field;
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view fields) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = fields.find(',');
    names.emplace_back(trimmed(fields.substr(0, comma)));
    if (comma == std::string_view::npos) return names;
    fields.remove_prefix(comma + 1);
  }
}

void append_row(std::string& out, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : ", ") + cells[i];
  out += '\n';
}

std::string with_unit(std::string text, const char* unit, bool units) {
  if (units && *unit != '\0') text += std::string(" ") + unit;
  return text;
}

std::string titled(const char* name, const char* unit) {
  return *unit == '\0' ? name : std::string(name) + " [" + unit + "]";
}

// The fields of --query-compute-apps.
constexpr Alias kProcessFields[] = {
    {"timestamp", "timestamp"},         {"gpu_name", "gpu_name"},
    {"gpu_bus_id", "gpu_bus_id"},       {"gpu_serial", "gpu_serial"},
    {"gpu_uuid", "gpu_uuid"},           {"pid", "pid"},
    {"name", "process_name"},           {"process_name", "process_name"},
    {"used_memory", "used_gpu_memory"}, {"used_gpu_memory", "used_gpu_memory"},
};

std::string process_cell(const Cards& cards, const Card& card, const LiveProcess& process,
                         std::string_view field, bool units) {
  if (field == "timestamp") return now_text();
  if (field == "gpu_name") return card.device->name;
  if (field == "gpu_bus_id") return pci_text(card.device->pci, 8);
  if (field == "gpu_serial")
    return has(card, Reading::serial) ? card.device->serial : not_available(*cards.scenario);
  if (field == "gpu_uuid") return card.device->uuid;
  if (field == "pid") return std::to_string(process.pid);
  if (field == "process_name") return shown_program(process);
  if (!process.used_bytes || !has(card, Reading::process_memory)) return not_available(*cards.scenario);
  return with_unit(std::to_string(*process.used_bytes / kMiB), "MiB", units);
}

}  // namespace

std::string query_devices(const Cards& cards, std::string_view fields, Format format, std::string& out) {
  std::vector<const Field*> chosen;
  for (const std::string& name : split(fields)) {
    const Field* field = field_named(name, cards.scenario->active_generation().branch);
    if (field == nullptr) return name;
    chosen.push_back(field);
  }
  std::vector<std::string> cells;
  for (const Field* field : chosen) cells.push_back(titled(field->name, field->unit));
  if (format.header) append_row(out, cells);
  for (const Card& card : cards.all) {
    cells.clear();
    for (const Field* field : chosen) {
      const Value value = field->value(cards, card);
      cells.push_back(value.available ? with_unit(value.text, field->unit, format.units)
                                      : not_available(*cards.scenario));
    }
    append_row(out, cells);
  }
  return {};
}

std::string query_processes(const Cards& cards, std::string_view fields, Format format, std::string& out) {
  std::vector<std::string> chosen;
  for (const std::string& name : split(fields)) {
    const auto* found = std::ranges::find(kProcessFields, std::string_view(name), &Alias::name);
    if (found == std::end(kProcessFields)) return name;
    chosen.emplace_back(found->canonical);
  }
  std::vector<std::string> cells;
  for (const std::string& name : chosen)
    cells.push_back(titled(name.c_str(), name == "used_gpu_memory" ? "MiB" : ""));
  if (format.header) append_row(out, cells);
  for (const Card& card : cards.all)
    for (const LiveProcess& process : card.load.processes) {
      if ((process.kinds & (kCompute | kMps)) == 0 || !has(card, Reading::processes)) continue;
      cells.clear();
      for (const std::string& name : chosen)
        cells.push_back(process_cell(cards, card, process, name, format.units));
      append_row(out, cells);
    }
  return {};
}

}  // namespace berth::sim
