#include "berth/source/nvidia_smi/smi_query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/source/unified_memory.h"

namespace berth::nvidia_smi {
namespace {

/// Whatever is not a number is one of the many ways to say that there is none: "[N/A]", "[Not
/// Supported]", "ERR!" …
template <class Number>
Reading<Number> number(std::string_view text) {
  return number_from_text<Number>(text);
}

Reading<std::uint64_t> mebibytes(std::string_view text) {
  const auto value = number<std::uint64_t>(text);
  return value ? Reading<std::uint64_t>(*value << 20U) : std::nullopt;
}

Reading<unsigned> milliwatts(std::string_view text) {
  const auto watts = number<double>(text);
  if (!watts || *watts < 0 || *watts > 1e6) return std::nullopt;
  return static_cast<unsigned>(*watts * 1000 + 0.5);
}

Reading<bool> enabled(std::string_view text) {
  if (text == "Enabled" || text == "Yes") return true;
  if (text == "Disabled" || text == "No") return false;
  return std::nullopt;
}

/// Text that is not "[N/A]".
std::string plain(std::string_view text) {
  return text.starts_with('[') ? std::string() : std::string(text);
}

Reading<ComputeMode> compute_mode(std::string_view text) {
  if (text == "Default") return ComputeMode::shared;
  if (text == "Exclusive_Thread") return ComputeMode::exclusive_thread;
  if (text == "Exclusive_Process") return ComputeMode::exclusive_process;
  if (text == "Prohibited") return ComputeMode::prohibited;
  return std::nullopt;
}

/// "9.0" is 90.
Reading<int> capability(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return std::nullopt;
  const auto major = number<int>(text.substr(0, point));
  const auto minor = number<int>(text.substr(point + 1));
  return major && minor ? source::capability_of(*major, *minor) : std::nullopt;
}

/// "00000000:07:00.0" is 0000:07:00.0 in sysfs.
std::string bus_id(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4) return {};
  const std::size_t zeros = std::min(text.find_first_not_of('0'), colon - 4);
  std::string id(text.substr(zeros));
  std::ranges::transform(id, id.begin(),
                         [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return id;
}

/// "P0" … "P15".
Reading<unsigned> performance_state(std::string_view text) {
  return text.starts_with('P') ? number<unsigned>(text.substr(1)) : std::nullopt;
}

Reading<std::uint64_t> hexadecimal(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? Reading<std::uint64_t>(value)
                                                                  : std::nullopt;
}

using Text = std::string_view;
using K = ReadingKind;

// The name is last: it is free text.
constexpr std::array kFields{
    Field{{}, "index", "", [](Device& d, Text t) { d.index = number<unsigned>(t).value_or(0); }},
    Field{{}, "uuid", "", [](Device& d, Text t) { d.uuid = plain(t); }},
    Field{{}, "pci.bus_id", "", [](Device& d, Text t) { d.pci_bus_id = bus_id(t); }},
    Field{K::driver, "driver_version", "", nullptr},
    Field{K::memory, "memory.total", "", [](Device& d, Text t) { d.memory.total_bytes = mebibytes(t); }},
    Field{K::memory, "memory.used", "", [](Device& d, Text t) { d.memory.used_bytes = mebibytes(t); }},
    Field{K::memory, "memory.free", "", [](Device& d, Text t) { d.memory.free_bytes = mebibytes(t); }},
    Field{K::memory, "memory.reserved", "",
          [](Device& d, Text t) { d.memory.reserved_bytes = mebibytes(t); }},
    Field{K::utilization, "utilization.gpu", "",
          [](Device& d, Text t) { d.utilization_percent = number<unsigned>(t); }},
    Field{K::utilization, "utilization.memory", "",
          [](Device& d, Text t) { d.memory_utilization_percent = number<unsigned>(t); }},
    Field{K::temperature, "temperature.gpu", "", [](Device& d, Text t) { d.temperature_c = number<int>(t); }},
    Field{K::power, "power.draw", "", [](Device& d, Text t) { d.power_mw = milliwatts(t); }},
    Field{K::power, "enforced.power.limit", "", [](Device& d, Text t) { d.power_limit_mw = milliwatts(t); }},
    Field{K::clocks, "clocks.sm", "", [](Device& d, Text t) { d.sm_clock_mhz = number<unsigned>(t); }},
    Field{K::clocks, "clocks.mem", "", [](Device& d, Text t) { d.memory_clock_mhz = number<unsigned>(t); }},
    Field{K::fan, "fan.speed", "", [](Device& d, Text t) { d.fan_percent = number<unsigned>(t); }},
    Field{K::compute_mode, "compute_mode", "", [](Device& d, Text t) { d.compute_mode = compute_mode(t); }},
    // Always: the processes and the memory of a split GPU are its instances'.
    Field{{}, "mig.mode.current", "", [](Device& d, Text t) { d.mig_enabled = enabled(t); }},
    Field{K::health, "ecc.errors.uncorrected.volatile.total", "",
          [](Device& d, Text t) { d.health.ecc_uncorrected = number<std::uint64_t>(t); }},
    Field{K::health, "retired_pages.pending", "",
          [](Device& d, Text t) { d.health.retired_pages_pending = enabled(t); }},
    Field{K::health, "gpu_recovery_action", "",
          [](Device& d, Text t) { d.health.recovery_action = recovery_word(t); }},
    Field{K::capability, "compute_cap", "", [](Device& d, Text t) { d.compute_capability = capability(t); }},
    Field{K::modes, "persistence_mode", "", [](Device& d, Text t) { d.persistence = enabled(t); }},
    Field{K::modes, "display_active", "", [](Device& d, Text t) { d.display_active = enabled(t); }},
    Field{K::modes, "pstate", "", [](Device& d, Text t) { d.performance_state = performance_state(t); }},
    Field{K::modes, "clocks_event_reasons.active", "clocks_throttle_reasons.active",
          [](Device& d, Text t) { d.throttle_reasons = hexadecimal(t); }},
    Field{K::modes, "pcie.link.gen.current", "",
          [](Device& d, Text t) { d.pcie_generation = number<unsigned>(t); }},
    Field{K::modes, "pcie.link.width.current", "",
          [](Device& d, Text t) { d.pcie_width = number<unsigned>(t); }},
    Field{{}, "name", "", [](Device& d, Text t) { d.name = plain(t); }},
};

}  // namespace

std::vector<std::string_view> split_line(std::string_view line, std::size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) break;
    parts.push_back(trimmed(line.substr(0, comma)));
    line.remove_prefix(comma + 1);
  }
  parts.push_back(trimmed(line));
  return parts;
}

Query::Query(ReadingSet readings) {
  for (const Field& field : kFields) {
    if (field.readings == ReadingSet() || (field.readings.bits & readings.bits) != 0) {
      columns_.push_back({.field = &field, .name = field.name});
    }
  }
}

std::string Query::columns() const {
  std::string text;
  for (const Column& column : columns_) {
    if (!text.empty()) text += ',';
    text += column.name;
  }
  return text;
}

bool Query::drop_refused(std::string_view message) {
  // Field "clocks_event_reasons.active" is not a valid field to query.
  const std::size_t begin = message.find('"');
  if (begin == std::string_view::npos) return false;
  const std::string_view name = message.substr(begin + 1, message.find('"', begin + 1) - begin - 1);
  const auto refused = std::ranges::find(columns_, name, &Column::name);
  if (refused == columns_.end()) return false;
  if (refused->name != refused->field->older && !refused->field->older.empty()) {
    refused->name = refused->field->older;
  } else {
    columns_.erase(refused);
  }
  return true;
}

std::vector<Device> Query::devices(std::string_view csv, std::string& driver_version) const {
  std::vector<Device> devices;
  while (!csv.empty()) {
    const std::size_t newline = std::min(csv.find('\n'), csv.size());
    const auto parts = split_line(csv.substr(0, newline), columns_.size());
    csv.remove_prefix(std::min(newline + 1, csv.size()));
    if (parts.size() != columns_.size() || !number<unsigned>(parts.front())) continue;
    Device& device = devices.emplace_back();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (columns_[i].field->put == nullptr) {
        driver_version = plain(parts[i]);
      } else {
        columns_[i].field->put(device, parts[i]);
      }
    }
  }
  return devices;
}

namespace {

/// The text between <name> or <name …> and </name>, for the first such element; `text` goes on
/// behind it. The report is made by a program and has no element inside one of the same name,
/// comments or CDATA.
std::optional<std::string_view> next_element(std::string_view& text, std::string_view name) {
  const std::string open = "<" + std::string(name);
  const std::string close = "</" + std::string(name) + ">";
  for (std::size_t at = text.find(open); at != std::string_view::npos; at = text.find(open, at + 1)) {
    const std::size_t after = at + open.size();
    if (after < text.size() && text[after] != '>' && text[after] != ' ') continue;
    const std::size_t begin = text.find('>', after);
    const std::size_t end = text.find(close, after);
    if (begin == std::string_view::npos || end == std::string_view::npos || begin > end) return std::nullopt;
    const std::string_view inner = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + close.size());
    return inner;
  }
  return std::nullopt;
}

/// The text of the first element of this name, "" if there is none.
std::string_view element(std::string_view text, std::string_view name) {
  return next_element(text, name).value_or(std::string_view{});
}

Reading<unsigned> unsigned_number(std::string_view text) {
  return number_from_text<unsigned>(text);
}

/// "N/A" where the GPU has no such thing.
Reading<bool> yes_or_no(std::string_view text) {
  if (text == "Yes") return true;
  if (text == "No") return false;
  return std::nullopt;
}

/// "512 MiB".
Reading<std::uint64_t> amount(std::string_view text) {
  const auto value = number_from_text<std::uint64_t>(text.substr(0, text.find(' ')));
  return value ? Reading<std::uint64_t>(*value << 20U) : std::nullopt;
}

ProcessKind kind_of(std::string_view type) {
  if (type == "G") return ProcessKind::graphics;
  return type.contains('G') ? ProcessKind::compute_and_graphics : ProcessKind::compute;
}

Reading<std::vector<ReportedProcess>> parse_processes(std::string_view gpu) {
  auto list = next_element(gpu, "processes");
  if (!list || list->starts_with("N/A") || list->starts_with("[")) return std::nullopt;
  std::vector<ReportedProcess> processes;
  while (const auto info = next_element(*list, "process_info")) {
    const auto pid = unsigned_number(element(*info, "pid"));
    if (!pid) continue;
    ReportedProcess& reported = processes.emplace_back();
    reported.process.pid = *pid;
    reported.process.kind = kind_of(element(*info, "type"));
    reported.process.used_bytes = amount(element(*info, "used_memory"));
    reported.gpu_instance = unsigned_number(element(*info, "gpu_instance_id"));
    reported.compute_instance = unsigned_number(element(*info, "compute_instance_id"));
  }
  return processes;
}

std::vector<ReportedInstance> parse_instances(std::string_view gpu) {
  std::vector<ReportedInstance> instances;
  std::string_view list = element(gpu, "mig_devices");
  while (const auto device = next_element(list, "mig_device")) {
    const auto slot = unsigned_number(element(*device, "index"));
    if (!slot) continue;
    ReportedInstance& instance = instances.emplace_back();
    instance.placement.slot = *slot;
    instance.placement.gpu_instance = unsigned_number(element(*device, "gpu_instance_id"));
    instance.placement.compute_instance = unsigned_number(element(*device, "compute_instance_id"));
    const std::string_view memory = element(*device, "fb_memory_usage");
    instance.memory.total_bytes = amount(element(memory, "total"));
    instance.memory.reserved_bytes = amount(element(memory, "reserved"));
    instance.memory.used_bytes = amount(element(memory, "used"));
    instance.memory.free_bytes = amount(element(memory, "free"));
  }
  return instances;
}

/// The text between `before` and `after`.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, text.find(after));
}

}  // namespace

std::vector<ReportedGpu> parse_report(std::string_view xml) {
  std::vector<ReportedGpu> gpus;
  while (const auto gpu = next_element(xml, "gpu")) {
    const std::string_view rows = element(*gpu, "remapped_rows");
    gpus.push_back({.uuid = std::string(element(*gpu, "uuid")),
                    .row_remap_pending = yes_or_no(element(rows, "remapped_row_pending")),
                    .row_remap_failed = yes_or_no(element(rows, "remapped_row_failure")),
                    .processes = parse_processes(*gpu),
                    .instances = parse_instances(*gpu)});
  }
  return gpus;
}

std::vector<ListedInstance> parse_list(std::string_view text) {
  // GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-…)
  //   MIG 1g.5gb      Device  0: (UUID: MIG-…)
  std::vector<ListedInstance> instances;
  std::string parent;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    const std::string_view uuid = between(line, "(UUID: ", ")");
    if (line.starts_with("GPU ")) parent = uuid;
    std::string_view slot = between(line, "Device", ":");
    slot.remove_prefix(std::min(slot.find_first_not_of(' '), slot.size()));
    const auto number_of_slot = unsigned_number(slot);
    if (!line.starts_with("  MIG ") || uuid.empty() || !number_of_slot) continue;
    instances.push_back({.parent_uuid = parent,
                         .slot = *number_of_slot,
                         .profile = std::string(between(line, "MIG ", " ")),
                         .uuid = std::string(uuid)});
  }
  return instances;
}

}  // namespace berth::nvidia_smi
