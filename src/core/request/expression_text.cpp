#include <fmt/format.h>

#include <array>

#include "berth/base/text_match.h"
#include "berth/request/expression_node.h"

namespace berth {
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
