#include "berth/request/expression_tree.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"

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

// How the values in an expression are written and shown, a kind of field at a time.

namespace {

constexpr double kMebibyte = 1ULL << 20;
constexpr double kGibibyte = 1ULL << 30;

struct ValueUnit {
  FieldKind kind;
  std::string_view name;
  double scale;
};
constexpr std::array kUnits{
    ValueUnit{FieldKind::percent, "%", 1},     ValueUnit{FieldKind::celsius, "C", 1},
    ValueUnit{FieldKind::celsius, "°C", 1},    ValueUnit{FieldKind::watts, "W", 1},
    ValueUnit{FieldKind::watts, "mW", 0.001},  ValueUnit{FieldKind::watts, "kW", 1000},
    ValueUnit{FieldKind::megahertz, "MHz", 1}, ValueUnit{FieldKind::megahertz, "GHz", 1000}};

std::optional<double> in_unit_of(FieldKind kind, const Quantity& quantity) {
  if (quantity.unit.empty()) return quantity.value;
  for (const ValueUnit& unit : kUnits) {
    if (unit.kind == kind && same_text(unit.name, quantity.unit)) return quantity.value * unit.scale;
  }
  return std::nullopt;
}

std::optional<FieldValue> memory_value(std::string_view text, const Quantity& quantity) {
  if (quantity.unit == "%") return FieldValue{quantity.value, true};
  // "free>=20" would be 20 bytes, which nobody means.
  if (quantity.unit.empty() && quantity.value > 0 && quantity.value < kMebibyte) return std::nullopt;
  const Result<std::uint64_t> bytes = bytes_from_text(text, Unitless::is_base);
  if (!bytes) return std::nullopt;
  return FieldValue{static_cast<double>(*bytes), false};
}

/// "8.0" or "8" is 80. Not 86: that is 8.6 to some, and a version that does not exist to us.
std::optional<FieldValue> version_value(std::string_view text) {
  unsigned major = 0, minor = 0;
  const char* const last = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), last, major);
  if (error != std::errc() || major > 49) return std::nullopt;
  if (at != last) {
    if (*at != '.') return std::nullopt;
    const auto [end, minor_error] = std::from_chars(at + 1, last, minor);
    if (minor_error != std::errc() || end != last || minor > 9) return std::nullopt;
  }
  return FieldValue{10.0 * major + minor, false};
}

std::optional<FieldValue> truth_value(std::string_view text) {
  for (const std::string_view yes : {"true", "yes", "1", "on"}) {
    if (same_text(text, yes)) return FieldValue{1, false};
  }
  for (const std::string_view no : {"false", "no", "0", "off"}) {
    if (same_text(text, no)) return FieldValue{0, false};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FieldValue> field_value_from_text(FieldKind kind, std::string_view text) {
  if (kind == FieldKind::version) return version_value(text);
  if (kind == FieldKind::truth) return truth_value(text);
  const std::optional<Quantity> quantity = quantity_from_text(text);
  if (!quantity) return std::nullopt;
  if (kind == FieldKind::bytes) return memory_value(text, *quantity);
  const std::optional<double> number = in_unit_of(kind, *quantity);
  if (!number) return std::nullopt;
  return FieldValue{*number, false};
}

std::string_view wanted_value(FieldKind kind) {
  switch (kind) {
    case FieldKind::text:
      return "a text";
    case FieldKind::bytes:
      return "an amount of memory with its unit, like 20G or 512MiB, or a share of the total, like 50%";
    case FieldKind::percent:
      return "a percentage, like 5 or 5%";
    case FieldKind::celsius:
      return "a temperature, like 80 or 80C";
    case FieldKind::watts:
      return "a power, like 150 or 150W";
    case FieldKind::megahertz:
      return "a clock, like 1200 or 1200MHz";
    case FieldKind::number:
      return "a number";
    case FieldKind::version:
      return "a compute capability, like 8.0";
    case FieldKind::truth:
      return "true or false";
  }
  return "";
}

std::string number_for_people(FieldKind kind, double number) {
  switch (kind) {
    case FieldKind::bytes:
      return bytes_for_people(static_cast<std::uint64_t>(number));
    case FieldKind::percent:
      return fmt::format("{:.0f} %", number);
    case FieldKind::celsius:
      return fmt::format("{:.0f} C", number);
    case FieldKind::watts:
      return number < 10 ? fmt::format("{:.1f} W", number) : fmt::format("{:.0f} W", number);
    case FieldKind::megahertz:
      return fmt::format("{:.0f} MHz", number);
    case FieldKind::version:
      return fmt::format("{:.1f}", number / 10);
    case FieldKind::truth:
      return number != 0 ? "true" : "false";
    default:
      return fmt::format("{:.0f}", number);
  }
}

std::string round_number(FieldKind kind, double number, bool down) {
  const auto rounded = [down](double value) { return down ? std::floor(value) : std::ceil(value); };
  switch (kind) {
    case FieldKind::bytes:
      // A gibibyte is coarse for a small card.
      if (number >= 4 * kGibibyte) return fmt::format("{:.0f}G", rounded(number / kGibibyte));
      return fmt::format("{:.0f}M", rounded(number / kMebibyte));
    case FieldKind::version:
      return fmt::format("{:.1f}", number / 10);
    default:
      return fmt::format("{:.0f}", rounded(number));
  }
}

namespace {

/// A bare word reads as itself if the parser would take it whole.
bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  for (const std::string_view keyword : {"and", "or", "not"}) {
    if (same_text(value, keyword)) return false;
  }
  return value.find_first_of(" \t\r\n\v\f()&|!<>=~\"'") == std::string_view::npos;
}

/// Whether a part must stand in parentheses inside a node of this kind.
bool needs_parentheses(NodeKind outer, NodeKind inner) {
  switch (outer) {
    case NodeKind::any:
      return inner == NodeKind::any;
    case NodeKind::all:
      return inner == NodeKind::any || inner == NodeKind::all;
    default:
      return inner == NodeKind::any || inner == NodeKind::all;
  }
}

}  // namespace

std::string_view to_text(Operator op) {
  constexpr std::array<std::string_view, 8> kTexts{"~", "!~", "=", "!=", "<", "<=", ">", ">="};
  return kTexts[static_cast<std::size_t>(op)];
}

std::string to_text(const ExpressionNode& node) {
  if (node.kind == NodeKind::comparison) {
    const Comparison& comparison = node.comparison;
    return fmt::format(
        "{} {} {}", comparison.field->name, to_text(comparison.op),
        is_plain(comparison.written) ? comparison.written : Expression::quoted(comparison.written));
  }
  std::string text = node.kind == NodeKind::negation ? "not " : "";
  for (const auto& part : node.parts) {
    if (&part != &node.parts.front()) text += node.kind == NodeKind::all ? " and " : " or ";
    const bool parentheses = needs_parentheses(node.kind, part->kind);
    text += parentheses ? fmt::format("({})", to_text(*part)) : to_text(*part);
  }
  return text;
}

std::string Expression::quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string Expression::unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
  std::string result;
  text = text.substr(1, text.size() - 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    result += text[i];
  }
  return result;
}

}  // namespace berth
