#include "berth/request/expression_field.h"

#include <array>
#include <limits>
#include <vector>

#include "berth/base/text_match.h"

namespace berth {
namespace {

/// Processes that compute; a desktop that only draws is not what a job competes with.
Reading<double> computing(const Device& device) {
  if (!device.processes) return std::nullopt;
  double count = 0;
  for (const Process& process : *device.processes) {
    if (process.kind != ProcessKind::graphics) count += 1;
  }
  return count;
}

// `free` counts what leases and outsiders use, so it needs to know who they are.
constexpr std::array kComputed{
    Field{"free", FieldKind::bytes, false, true, ReadingKind::memory | ReadingKind::processes, nullptr,
          [](const DeviceFacts& facts) -> Reading<double> {
            return facts.free_bytes ? Reading<double>(static_cast<double>(*facts.free_bytes)) : std::nullopt;
          }},
    Field{"processes", FieldKind::number, false, true, ReadingKind::processes, nullptr,
          [](const DeviceFacts& facts) { return computing(facts.device); }},
    Field{"mig", FieldKind::truth, true, true, ReadingKind::mig, nullptr,
          [](const DeviceFacts& facts) -> Reading<double> { return facts.device.mig ? 1.0 : 0.0; }},
    Field{"host", FieldKind::text, true, true, ReadingKind::host, nullptr, nullptr,
          [](const HostFacts& host) { return std::span(&host.name, 1); }},
    Field{"label", FieldKind::text, true, true, ReadingSet(), nullptr, nullptr,
          [](const HostFacts& host) { return std::span(host.labels); }}};

const std::vector<Field>& fields() {
  static const std::vector<Field> kFields = [] {
    std::vector<Field> all;
    for (const DeviceReading& row : device_readings()) {
      if (row.expression.empty()) continue;
      all.push_back({row.expression, row.kind, row.is_static, row.on_mig, row.readings, &row});
    }
    all.insert(all.end(), kComputed.begin(), kComputed.end());
    return all;
  }();
  return kFields;
}

struct Alias {
  std::string_view alias;
  std::string_view name;
};
constexpr std::array kAliases{
    Alias{"model", "name"},       Alias{"maker", "vendor"},     Alias{"id", "index"},
    Alias{"bus", "pci"},          Alias{"memory", "total"},     Alias{"memory_total", "total"},
    Alias{"memory_free", "free"}, Alias{"memory_used", "used"}, Alias{"utilization", "util"},
    Alias{"utilisation", "util"}, Alias{"gpu_util", "util"},    Alias{"memory_util", "mem_util"},
    Alias{"temperature", "temp"}, Alias{"clock", "sm_clock"},   Alias{"memory_clock", "mem_clock"},
    Alias{"procs", "processes"},  Alias{"capability", "cc"},    Alias{"compute_capability", "cc"},
    Alias{"labels", "label"},     Alias{"hostname", "host"},    Alias{"load", "util"}};

}  // namespace

Reading<double> Field::number(const DeviceFacts& facts) const {
  return reading == nullptr ? computed(facts) : number_of(*reading, facts.device);
}

Reading<std::string_view> Field::text(const DeviceFacts& facts) const {
  return reading == nullptr ? std::nullopt : text_of(*reading, facts.device);
}

const Field* find_field(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (same_text(alias.alias, name)) name = alias.name;
  }
  for (const Field& field : fields()) {
    if (same_text(field.name, name)) return &field;
  }
  return nullptr;
}

std::string_view nearest_field_name(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Field& field : fields()) known.push_back(field.name);
  for (const Alias& alias : kAliases) known.push_back(alias.alias);
  return nearest_word(name, known);
}

std::string field_names() {
  std::string names;
  for (const Field& field : fields()) {
    if (!names.empty()) names += ", ";
    names += field.name;
  }
  return names;
}

Reading<Range> possible_range(const Field& field, const Device& device) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  if (field.is_static) {
    const Reading<double> number = field.number(DeviceFacts{device, std::nullopt});
    return number ? Reading<Range>(Range{*number, *number}) : std::nullopt;
  }
  if (device.mig && !field.on_mig) return std::nullopt;
  switch (field.kind) {
    case FieldKind::bytes: {
      const Memory& memory = device.memory;
      if (!memory.total_bytes) return Range{0, kAny};
      const std::uint64_t reserved = field.name == "free" ? memory.reserved_bytes.value_or(0) : 0;
      return Range{0, static_cast<double>(*memory.total_bytes) - static_cast<double>(reserved)};
    }
    case FieldKind::celsius:
      return Range{-kAny, kAny};
    default:
      // Also percentages: a fan may turn at more than 100 %.
      return Range{0, kAny};
  }
}

}  // namespace berth
