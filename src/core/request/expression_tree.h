#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device_readings.h"
#include "berth/request/request.h"

namespace berth {

/// A field of expressions: a row of the table of readings, or a value computed from several.
/// Numbers are doubles: exact up to 2^53, which is more memory in bytes than any device has.
struct Field {
  std::string_view name;
  FieldKind kind;
  bool is_static;  ///< never changes while the machine runs
  bool on_mig;     ///< a MIG instance has it; if false, it is never available there
  ReadingSet readings;
  const DeviceReading* reading;  ///< null: it is computed
  Reading<double> (*computed)(const DeviceFacts&) = nullptr;
  /// If set, the field is of the host, and has any number of texts.
  std::span<const std::string> (*of_host)(const HostFacts&) = nullptr;

  Reading<double> number(const DeviceFacts& facts) const;
  Reading<std::string_view> text(const DeviceFacts& facts) const;
};

/// The field of this name or alias, or null.
const Field* find_field(std::string_view name);
/// The name or alias that is most like a wrong name, or "".
std::string_view nearest_field_name(std::string_view name);
/// "name, uuid, …": for messages.
std::string field_names();

/// A value as written, in the field's own unit. `share`: "50%" for a field of memory. nullopt: the
/// text does not fit the kind.
struct FieldValue {
  double number = 0;
  bool share = false;
};
std::optional<FieldValue> field_value_from_text(FieldKind kind, std::string_view text);
/// The value that a field of this kind takes, in words: "an amount of memory like 20G".
std::string_view wanted_value(FieldKind kind);

/// "40 %", "11.2 GiB": for people.
std::string number_for_people(FieldKind kind, double number);
/// The number as people would write it in an expression, rounded down or up as `down` says: "11G".
std::string round_number(FieldKind kind, double number, bool down);

/// The lowest and highest value that the field can ever have on this device. Absent: the device
/// does not have the reading.
struct Range {
  double low = 0;
  double high = 0;
};
Reading<Range> possible_range(const Field& field, const Device& device);

enum class Operator { contains, contains_not, equal, not_equal, less, at_most, more, at_least };
std::string_view to_text(Operator op);

struct Comparison {
  const Field* field = nullptr;
  Operator op = Operator::equal;
  FieldValue value;     ///< of a number
  std::string written;  ///< the value as written, without quotes
};

enum class NodeKind { comparison, all, any, negation };

/// A parsed expression. Immutable once built, and shared between the expressions that it is part
/// of.
struct ExpressionNode {
  NodeKind kind = NodeKind::comparison;
  Comparison comparison;
  std::vector<std::shared_ptr<const ExpressionNode>> parts;  ///< one for a negation, two or more for all, any
};

/// The text of a node, with parentheses where they are needed.
std::string to_text(const ExpressionNode& node);

/// Error: `usage`, as Expression::parse.
Result<std::shared_ptr<const ExpressionNode>> parse_expression(std::string_view text);

}  // namespace berth
