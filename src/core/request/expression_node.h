#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/request/expression_field.h"

namespace berth {

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
