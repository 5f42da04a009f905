#include "berth/core/expression_field.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "berth/core/text_match.h"
#include "berth/core/units.h"

namespace berth {
namespace {

template <class T>
Reading<double> as_number(const Reading<T>& reading) {
  return reading ? Reading<double>(static_cast<double>(*reading)) : std::nullopt;
}
Reading<double> milli(const Reading<unsigned>& reading) {
  return reading ? Reading<double>(*reading / 1000.0) : std::nullopt;
}
Reading<std::string_view> as_text(const std::string& text) {
  return text.empty() ? std::nullopt : Reading<std::string_view>(text);
}

/// Processes that compute; a desktop that only draws is not what a job competes with.
Reading<double> computing(const Device& device) {
  if (!device.processes) return std::nullopt;
  double count = 0;
  for (const Process& process : *device.processes) {
    if (process.kind != ProcessKind::graphics) count += 1;
  }
  return count;
}

using Of = const DeviceFacts&;
using Number = Reading<double>;
using Text = Reading<std::string_view>;
constexpr bool kStatic = true, kChanges = false, kOnMig = true, kNotOnMig = false;
constexpr ReadingSet kMemory = ReadingKind::memory;
// `free` counts what leases and outsiders use, so it needs to know who they are.
constexpr ReadingSet kFree = ReadingKind::memory | ReadingKind::processes;

constexpr std::array kFields{
    Field{"name", FieldKind::text, kStatic, kOnMig, ReadingKind::name, nullptr,
          [](Of f) -> Text { return as_text(f.device.name); }},
    Field{"uuid",
          FieldKind::text,
          kStatic,
          kOnMig,
          {},
          nullptr,
          [](Of f) -> Text { return as_text(f.device.uuid); }},
    Field{"index",
          FieldKind::number,
          kStatic,
          kOnMig,
          {},
          [](Of f) -> Number { return f.device.index; },
          nullptr},
    Field{"pci", FieldKind::text, kStatic, kOnMig, ReadingKind::pci, nullptr,
          [](Of f) -> Text { return as_text(f.device.pci_bus_id); }},
    Field{"total", FieldKind::bytes, kStatic, kOnMig, kMemory,
          [](Of f) -> Number { return as_number(f.device.memory.total_bytes); }, nullptr},
    Field{"free", FieldKind::bytes, kChanges, kOnMig, kFree,
          [](Of f) -> Number { return as_number(f.free_bytes); }, nullptr},
    Field{"used", FieldKind::bytes, kChanges, kOnMig, kMemory,
          [](Of f) -> Number { return as_number(f.device.memory.used_bytes); }, nullptr},
    Field{"util", FieldKind::percent, kChanges, kNotOnMig, ReadingKind::utilization,
          [](Of f) -> Number { return as_number(f.device.utilization_percent); }, nullptr},
    Field{"mem_util", FieldKind::percent, kChanges, kNotOnMig, ReadingKind::utilization,
          [](Of f) -> Number { return as_number(f.device.memory_utilization_percent); }, nullptr},
    Field{"temp", FieldKind::celsius, kChanges, kNotOnMig, ReadingKind::temperature,
          [](Of f) -> Number { return as_number(f.device.temperature_c); }, nullptr},
    Field{"power", FieldKind::watts, kChanges, kNotOnMig, ReadingKind::power,
          [](Of f) -> Number { return milli(f.device.power_mw); }, nullptr},
    Field{"power_limit", FieldKind::watts, kChanges, kNotOnMig, ReadingKind::power,
          [](Of f) -> Number { return milli(f.device.power_limit_mw); }, nullptr},
    Field{"sm_clock", FieldKind::megahertz, kChanges, kNotOnMig, ReadingKind::clocks,
          [](Of f) -> Number { return as_number(f.device.sm_clock_mhz); }, nullptr},
    Field{"mem_clock", FieldKind::megahertz, kChanges, kNotOnMig, ReadingKind::clocks,
          [](Of f) -> Number { return as_number(f.device.memory_clock_mhz); }, nullptr},
    Field{"fan", FieldKind::percent, kChanges, kNotOnMig, ReadingKind::fan,
          [](Of f) -> Number { return as_number(f.device.fan_percent); }, nullptr},
    Field{"processes", FieldKind::number, kChanges, kOnMig, ReadingKind::processes,
          [](Of f) -> Number { return computing(f.device); }, nullptr},
    Field{"cc", FieldKind::version, kStatic, kOnMig, ReadingKind::capability,
          [](Of f) -> Number { return as_number(f.device.compute_capability); }, nullptr},
    Field{"mig", FieldKind::truth, kStatic, kOnMig, ReadingKind::mig,
          [](Of f) -> Number { return f.device.mig ? 1.0 : 0.0; }, nullptr}};

struct Alias {
  std::string_view alias;
  std::string_view name;
};
constexpr std::array kAliases{Alias{"model", "name"},
                              Alias{"id", "index"},
                              Alias{"bus", "pci"},
                              Alias{"memory", "total"},
                              Alias{"memory_total", "total"},
                              Alias{"memory_free", "free"},
                              Alias{"memory_used", "used"},
                              Alias{"utilization", "util"},
                              Alias{"utilisation", "util"},
                              Alias{"gpu_util", "util"},
                              Alias{"memory_util", "mem_util"},
                              Alias{"temperature", "temp"},
                              Alias{"clock", "sm_clock"},
                              Alias{"memory_clock", "mem_clock"},
                              Alias{"procs", "processes"},
                              Alias{"capability", "cc"},
                              Alias{"compute_capability", "cc"}};

}  // namespace

const Field* find_field(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (same_text(alias.alias, name)) name = alias.name;
  }
  for (const Field& field : kFields) {
    if (same_text(field.name, name)) return &field;
  }
  return nullptr;
}

std::string_view nearest_field_name(std::string_view name) {
  std::string_view nearest;
  unsigned least = 3;
  const auto consider = [&](std::string_view known) {
    const unsigned distance = spelling_distance(name, known);
    // A word whose every letter is wrong is not a misspelling of "cc".
    if (distance < least && distance * 2 <= known.size()) {
      least = distance;
      nearest = known;
    }
  };
  for (const Field& field : kFields) consider(field.name);
  for (const Alias& alias : kAliases) consider(alias.alias);
  return nearest;
}

std::string field_names() {
  std::string names;
  for (const Field& field : kFields) {
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
