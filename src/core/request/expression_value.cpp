// How the values in an expression are written and shown, a kind of field at a time.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/request/expression_field.h"

namespace berth {
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

}  // namespace berth
