#include "berth/request/request.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/request/expression_tree.h"

namespace berth {
namespace {

/// With a third value for what rests on a reading that is absent, so that "not util < 5" does not
/// hold where nobody knows the utilisation.
enum class Truth { no, unknown, yes };

Truth truth(bool holds) {
  return holds ? Truth::yes : Truth::no;
}
Truth opposite(Truth value) {
  return static_cast<Truth>(2 - static_cast<int>(value));
}

bool compare(double actual, Operator op, double wanted) {
  switch (op) {
    case Operator::equal:
      return actual == wanted;
    case Operator::not_equal:
      return actual != wanted;
    case Operator::less:
      return actual < wanted;
    case Operator::at_most:
      return actual <= wanted;
    case Operator::more:
      return actual > wanted;
    case Operator::at_least:
      return actual >= wanted;
    default:
      return false;
  }
}

bool compare(std::string_view actual, Operator op, std::string_view wanted) {
  switch (op) {
    case Operator::contains:
      return contains_text(actual, wanted);
    case Operator::contains_not:
      return !contains_text(actual, wanted);
    case Operator::equal:
      return same_text(actual, wanted);
    default:
      return !same_text(actual, wanted);
  }
}

// Of several texts one is enough, and what is not to be is to be none of them.
bool compare(std::span<const std::string> actual, Operator op, std::string_view wanted) {
  const auto fits = [&](const std::string& text) { return compare(text, op, wanted); };
  const bool negative = op == Operator::contains_not || op == Operator::not_equal;
  return negative ? std::ranges::all_of(actual, fits) : std::ranges::any_of(actual, fits);
}

/// The number to compare with: a share is of the device's total.
Reading<double> wanted_number(const Comparison& comparison, const Device& device) {
  if (!comparison.value.share) return comparison.value.number;
  if (!device.memory.total_bytes) return std::nullopt;
  return comparison.value.number / 100 * static_cast<double>(*device.memory.total_bytes);
}

Truth evaluate(const Comparison& comparison, const DeviceFacts& facts) {
  const Field& field = *comparison.field;
  if (field.of_host != nullptr) {
    if (facts.host == nullptr) return Truth::unknown;
    return truth(compare(field.of_host(*facts.host), comparison.op, comparison.written));
  }
  if (field.kind == FieldKind::text) {
    const Reading<std::string_view> actual = field.text(facts);
    return actual ? truth(compare(*actual, comparison.op, comparison.written)) : Truth::unknown;
  }
  const Reading<double> actual = field.number(facts);
  const Reading<double> wanted = wanted_number(comparison, facts.device);
  if (!actual || !wanted) return Truth::unknown;
  return truth(compare(*actual, comparison.op, *wanted));
}

/// The truth of a node from that of its comparisons.
template <class OfComparison>
Truth evaluate(const ExpressionNode& node, const OfComparison& of_comparison) {
  if (node.kind == NodeKind::comparison) return of_comparison(node.comparison);
  Truth result = evaluate(*node.parts.front(), of_comparison);
  if (node.kind == NodeKind::negation) return opposite(result);
  for (std::size_t i = 1; i < node.parts.size(); ++i) {
    const Truth part = evaluate(*node.parts[i], of_comparison);
    result = node.kind == NodeKind::all ? std::min(result, part) : std::max(result, part);
  }
  return result;
}

template <class Visit>
void for_each_comparison(const ExpressionNode& node, const Visit& visit) {
  if (node.kind == NodeKind::comparison) visit(node.comparison);
  for (const auto& part : node.parts) for_each_comparison(*part, visit);
}

std::string found(const Comparison& comparison, const DeviceFacts& facts) {
  const Field& field = *comparison.field;
  if (field.of_host != nullptr) {
    if (facts.host == nullptr) return "not known of this host";
    const auto texts = field.of_host(*facts.host);
    return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
  }
  if (field.kind == FieldKind::text) {
    const Reading<std::string_view> actual = field.text(facts);
    return actual ? std::string(*actual) : "not available";
  }
  const Reading<double> actual = field.number(facts);
  if (!actual) return "not available";
  if (!comparison.value.share) return number_for_people(field.kind, *actual);
  const Reading<std::uint64_t>& total = facts.device.memory.total_bytes;
  if (!total || *total == 0) return "a share of a total that is not available";
  return fmt::format("{:.0f} %", *actual / static_cast<double>(*total) * 100);
}

Unmet unmet(const ExpressionNode& node, const DeviceFacts& facts) {
  if (node.kind == NodeKind::comparison) return {to_text(node), found(node.comparison, facts)};
  Unmet result{to_text(node), ""};
  std::size_t count = 0;
  for_each_comparison(node, [&count](const Comparison&) { ++count; });
  for_each_comparison(node, [&](const Comparison& comparison) {
    if (!result.actual.empty()) result.actual += ", ";
    if (count > 1) result.actual += fmt::format("{} ", comparison.field->name);
    result.actual += found(comparison, facts);
  });
  return result;
}

/// The first part of a node, and of what it joins by "and", that does not hold.
template <class OfComparison>
const ExpressionNode* first_failing(const ExpressionNode& node, const OfComparison& of_comparison) {
  if (evaluate(node, of_comparison) == Truth::yes) return nullptr;
  if (node.kind != NodeKind::all) return &node;
  for (const auto& part : node.parts) {
    if (const ExpressionNode* failing = first_failing(*part, of_comparison)) return failing;
  }
  return &node;
}

/// Whether a comparison may come true, and may come false, on this device at some time.
struct Possible {
  bool yes = false;
  bool no = false;
};

bool some_in(const Range& range, Operator op, double wanted) {
  switch (op) {
    case Operator::equal:
      return range.low <= wanted && wanted <= range.high;
    case Operator::not_equal:
      return range.low != wanted || range.high != wanted;
    case Operator::less:
    case Operator::at_most:
      return compare(range.low, op, wanted);
    default:
      return compare(range.high, op, wanted);
  }
}

Operator opposite(Operator op) {
  constexpr Operator kOpposites[] = {Operator::contains_not, Operator::contains, Operator::not_equal,
                                     Operator::equal,        Operator::at_least, Operator::more,
                                     Operator::at_most,      Operator::less};
  return kOpposites[static_cast<std::size_t>(op)];
}

Possible possible(const Comparison& comparison, const DeviceFacts& facts) {
  if (comparison.field->kind == FieldKind::text) {
    const Truth now = evaluate(comparison, facts);
    return {now == Truth::yes, now == Truth::no};
  }
  const Reading<Range> range = possible_range(*comparison.field, facts.device);
  const Reading<double> wanted = wanted_number(comparison, facts.device);
  if (!range || !wanted) return {};
  return {some_in(*range, comparison.op, *wanted), some_in(*range, opposite(comparison.op), *wanted)};
}

/// As if each comparison were alone: "free > 10G and free < 5G" may hold by this.
Possible possible(const ExpressionNode& node, const DeviceFacts& facts) {
  if (node.kind == NodeKind::comparison) return possible(node.comparison, facts);
  Possible result = possible(*node.parts.front(), facts);
  if (node.kind == NodeKind::negation) return {result.no, result.yes};
  for (std::size_t i = 1; i < node.parts.size(); ++i) {
    const Possible part = possible(*node.parts[i], facts);
    const bool all = node.kind == NodeKind::all;
    result.yes = all ? result.yes && part.yes : result.yes || part.yes;
    result.no = all ? result.no || part.no : result.no && part.no;
  }
  return result;
}

}  // namespace

Expression::Expression(std::shared_ptr<const ExpressionNode> root)
    : root_(std::move(root)), text_(to_text(*root_)) {}

Result<Expression> Expression::parse(std::string_view text) {
  Result<std::shared_ptr<const ExpressionNode>> root = parse_expression(text);
  if (!root) return std::unexpected(root.error());
  return Expression(*std::move(root));
}

std::optional<Unmet> Expression::unmet_by(const DeviceFacts& facts) const {
  if (!root_) return std::nullopt;
  const auto now = [&facts](const Comparison& comparison) { return evaluate(comparison, facts); };
  const ExpressionNode* failing = first_failing(*root_, now);
  if (!failing) return std::nullopt;
  return unmet(*failing, facts);
}

std::optional<Unmet> Expression::never_met_by(const Device& device, const HostFacts* host) const {
  if (!root_) return std::nullopt;
  const DeviceFacts facts{device, std::nullopt, host};
  for (const Expression& part : conjuncts()) {
    if (possible(*part.root_, facts).yes) continue;
    const Threshold limit = part.threshold().value_or(Threshold{});
    const Reading<Range> range =
        limit.field.empty() ? std::nullopt : possible_range(*find_field(limit.field), device);
    if (limit.field == "free" && range) {
      return Unmet{part.text(), fmt::format("{} at most", number_for_people(FieldKind::bytes, range->high))};
    }
    return unmet(*part.root_, facts);
  }
  return std::nullopt;
}

ReadingSet Expression::readings() const {
  ReadingSet set;
  if (!root_) return set;
  for_each_comparison(*root_, [&set](const Comparison& comparison) {
    set |= comparison.field->readings;
    if (comparison.value.share) set |= ReadingKind::memory;
  });
  return set;
}

std::vector<Expression> Expression::conjuncts() const {
  if (!root_) return {};
  if (root_->kind != NodeKind::all) return {*this};
  std::vector<Expression> result;
  for (const auto& part : root_->parts) {
    for (Expression& inner : Expression(part).conjuncts()) result.push_back(std::move(inner));
  }
  return result;
}

std::optional<Threshold> Expression::threshold() const {
  if (!root_ || root_->kind != NodeKind::comparison) return std::nullopt;
  const Comparison& comparison = root_->comparison;
  const Operator op = comparison.op;
  const bool at_least = op == Operator::more || op == Operator::at_least;
  if (!at_least && op != Operator::less && op != Operator::at_most) return std::nullopt;
  return Threshold{std::string(comparison.field->name), at_least,
                   op == Operator::more || op == Operator::less, comparison.value.share,
                   comparison.value.number};
}

std::optional<Expression> Expression::loosened_for(const DeviceFacts& facts) const {
  const std::optional<Threshold> limit = threshold();
  if (!limit) return std::nullopt;
  const Field& field = *root_->comparison.field;
  Reading<double> actual = field.number(facts);
  const Reading<std::uint64_t>& total = facts.device.memory.total_bytes;
  if (!actual || (limit->share && !total)) return std::nullopt;
  if (limit->share) actual = *actual / static_cast<double>(*total) * 100;
  std::string value = round_number(limit->share ? FieldKind::percent : field.kind, *actual, limit->at_least);
  if (limit->share) value += '%';
  // "at least nothing" is no threshold any more.
  if (limit->at_least && (value.front() == '0' || *actual <= 0)) return std::nullopt;
  const Result<Expression> loosened =
      parse(fmt::format("{} {} {}", field.name, limit->at_least ? ">=" : "<=", value));
  if (!loosened || loosened->unmet_by(facts)) return std::nullopt;
  return *loosened;
}

namespace {

enum class Kind { text, bytes, number };

struct Filter {
  std::string_view name;
  std::string_view comparison;
  Kind kind;
  std::string_view unit;  ///< that may stand after the number
};

constexpr std::array<Filter, 7> kFilters{{
    {"name", "name~", Kind::text, ""},
    {"free", "free>=", Kind::bytes, ""},
    {"total", "total>=", Kind::bytes, ""},
    {"util", "util<=", Kind::number, "%"},
    {"mem_util", "mem_util<=", Kind::number, "%"},
    {"power", "power<=", Kind::number, "W"},
    {"temp", "temp<=", Kind::number, "C"},
}};

}  // namespace

// The value is checked by itself first, so that a message speaks of what the user wrote.
Result<Expression> filter(std::string_view name, std::string_view value) {
  const auto found = std::ranges::find(kFilters, name, &Filter::name);
  if (found == kFilters.end()) return fail(ErrorCode::usage, "there is no filter {}", name);
  if (found->kind == Kind::bytes) {
    if (const auto bytes = bytes_from_text(value); !bytes) return std::unexpected(bytes.error());
  }
  if (found->kind != Kind::number)
    return Expression::parse(fmt::format("{}{}", found->comparison, Expression::quoted(value)));
  if (!found->unit.empty() && value.ends_with(found->unit)) value.remove_suffix(found->unit.size());
  const auto number = number_from_text<unsigned>(value);
  if (!number) return fail(ErrorCode::usage, "must be a whole number, 0 or more");
  return Expression::parse(fmt::format("{}{}", found->comparison, *number));
}

std::string filter_value(std::string_view name, const Expression& condition) {
  const auto found = std::ranges::find(kFilters, name, &Filter::name);
  if (found == kFilters.end()) return "";
  const std::string_view text = condition.text();
  const std::string start = fmt::format("{} {} ", name, found->comparison.substr(found->name.size()));
  if (!text.starts_with(start)) return "";
  const std::string value = Expression::unquoted(text.substr(start.size()));
  const auto again = filter(name, value);
  return again && again->text() == text ? value : "";
}

}  // namespace berth
