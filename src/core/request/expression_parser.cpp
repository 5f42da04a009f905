// A recursive descent over tokens, with one token of look-ahead. The grammar is in
// docs/expressions.md.

#include <array>

#include "berth/base/text.h"
#include "berth/request/expression_tree.h"

namespace berth {
namespace {

using NodePtr = std::shared_ptr<const ExpressionNode>;

enum class TokenKind { word, quoted, op, open, close, conjunction, disjunction, negation, end, unclosed };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view source;  ///< as it stands in the text
  std::string text;         ///< of a quoted one: what it means
  Operator op = Operator::equal;
};

/// The characters that a bare word cannot contain.
constexpr std::string_view kNotInWord = " \t\r\n\v\f()&|!<>=~\"'";

struct Symbol {
  std::string_view text;
  TokenKind kind;
  Operator op = Operator::equal;
};
/// Longer ones before those that they begin with.
constexpr std::array kSymbols{Symbol{"&&", TokenKind::conjunction},
                              Symbol{"&", TokenKind::conjunction},
                              Symbol{"||", TokenKind::disjunction},
                              Symbol{"|", TokenKind::disjunction},
                              Symbol{"!~", TokenKind::op, Operator::contains_not},
                              Symbol{"!=", TokenKind::op, Operator::not_equal},
                              Symbol{"==", TokenKind::op, Operator::equal},
                              Symbol{"<=", TokenKind::op, Operator::at_most},
                              Symbol{">=", TokenKind::op, Operator::at_least},
                              Symbol{"~", TokenKind::op, Operator::contains},
                              Symbol{"=", TokenKind::op, Operator::equal},
                              Symbol{"<", TokenKind::op, Operator::less},
                              Symbol{">", TokenKind::op, Operator::more},
                              Symbol{"!", TokenKind::negation},
                              Symbol{"(", TokenKind::open},
                              Symbol{")", TokenKind::close}};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Token next() {
    rest_.remove_prefix(static_cast<std::size_t>(trimmed_front() - rest_.data()));
    if (rest_.empty()) return Token{TokenKind::end, rest_, {}};
    if (rest_.front() == '"' || rest_.front() == '\'') return quoted();
    for (const Symbol& symbol : kSymbols) {
      if (rest_.starts_with(symbol.text)) return Token{symbol.kind, take(symbol.text.size()), {}, symbol.op};
    }
    const std::string_view word = take(std::min(rest_.find_first_of(kNotInWord), rest_.size()));
    TokenKind kind = TokenKind::word;
    if (same_text(word, "and")) kind = TokenKind::conjunction;
    if (same_text(word, "or")) kind = TokenKind::disjunction;
    if (same_text(word, "not")) kind = TokenKind::negation;
    return Token{kind, word, std::string(word)};
  }

 private:
  const char* trimmed_front() const {
    const auto at = rest_.find_first_not_of(" \t\r\n\v\f");
    return rest_.data() + std::min(at, rest_.size());
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  /// In quotes a backslash takes the next character as it is.
  Token quoted() {
    const char quote = rest_.front();
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) return Token{TokenKind::quoted, take(i + 1), text};
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      text += rest_[i];
    }
    return Token{TokenKind::unclosed, take(rest_.size()), text};
  }

  std::string_view rest_;
};

/// Columns are characters, as a terminal shows them, not bytes.
std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++count;
  }
  return count;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), lexer_(text), token_(lexer_.next()) {}

  Result<NodePtr> parse() {
    Result<NodePtr> root = disjunction();
    if (!root) return root;
    if (token_.kind == TokenKind::close) return wrong("there is no \"(\" to this \")\"");
    if (token_.kind != TokenKind::end) return wrong(after_value());
    return root;
  }

 private:
  using Rule = Result<NodePtr> (Parser::*)();

  Result<NodePtr> disjunction() { return chain(TokenKind::disjunction, NodeKind::any, &Parser::conjunction); }
  Result<NodePtr> conjunction() { return chain(TokenKind::conjunction, NodeKind::all, &Parser::negation); }

  Result<NodePtr> chain(TokenKind joint, NodeKind kind, Rule part) {
    auto node = std::make_shared<ExpressionNode>();
    node->kind = kind;
    while (true) {
      Result<NodePtr> parsed = (this->*part)();
      if (!parsed) return parsed;
      node->parts.push_back(*parsed);
      if (token_.kind != joint) break;
      advance();
    }
    if (node->parts.size() == 1) return node->parts.front();
    return node;
  }

  Result<NodePtr> negation() {
    if (token_.kind != TokenKind::negation && token_.kind != TokenKind::open) return comparison();
    // Each level is a level of the C++ stack, too.
    constexpr unsigned kMaxDepth = 100;
    if (++depth_ > kMaxDepth) return wrong("this is nested too deeply");
    Result<NodePtr> result = token_.kind == TokenKind::open ? parenthesis() : negated();
    --depth_;
    return result;
  }

  Result<NodePtr> negated() {
    advance();
    Result<NodePtr> part = negation();
    if (!part) return part;
    auto node = std::make_shared<ExpressionNode>();
    node->kind = NodeKind::negation;
    node->parts.push_back(*part);
    return node;
  }

  Result<NodePtr> parenthesis() {
    const std::string_view open = token_.source;
    advance();
    Result<NodePtr> inner = disjunction();
    if (!inner) return inner;
    if (token_.kind == TokenKind::end) return wrong_at(open, "there is no \")\" to this \"(\"");
    if (token_.kind != TokenKind::close) return wrong(after_value());
    advance();
    return inner;
  }

  Result<NodePtr> comparison() {
    if (token_.kind != TokenKind::word) return wrong(fmt::format("expected a field ({})", field_names()));
    Comparison comparison;
    comparison.field = find_field(token_.source);
    if (!comparison.field) return wrong(unknown_field());
    field_source_ = token_.source;
    advance();
    if (token_.kind != TokenKind::op) {
      if (comparison.field->kind != FieldKind::truth) return wrong(missing_operator(*comparison.field));
      comparison.written = "true";
      comparison.value.number = 1;
      return leaf(std::move(comparison));
    }
    if (!admits(comparison.field->kind, token_.op)) return wrong(bad_operator(*comparison.field));
    comparison.op = token_.op;
    advance();
    return value(std::move(comparison));
  }

  Result<NodePtr> value(Comparison comparison) {
    const FieldKind kind = comparison.field->kind;
    if (token_.kind == TokenKind::unclosed) return wrong("this quote is not closed");
    if (token_.kind != TokenKind::word && token_.kind != TokenKind::quoted) {
      return wrong(fmt::format("expected {} after \"{} {}\"", wanted_value(kind), field_source_,
                               to_text(comparison.op)));
    }
    Token taken = token_;
    advance();
    join_unit(kind, taken);
    comparison.written = taken.text;
    if (kind != FieldKind::text) {
      const std::optional<FieldValue> parsed = field_value_from_text(kind, taken.text);
      const bool share_of_itself = parsed && parsed->share && comparison.field->name == "total";
      if (!parsed || share_of_itself) {
        return wrong_at(taken.source, fmt::format("\"{}\" is not {}", taken.text, wanted_value(kind)));
      }
      comparison.value = *parsed;
    }
    return leaf(std::move(comparison));
  }

  /// "20 GiB" is one value, although it is two words.
  void join_unit(FieldKind kind, Token& number) {
    if (kind == FieldKind::text || number.kind != TokenKind::word || token_.kind != TokenKind::word) return;
    const std::string joined = number.text + token_.text;
    const bool alone = number.text.find_first_not_of("0123456789.") == std::string::npos;
    if (!alone || !field_value_from_text(kind, joined)) return;
    number.text = joined;
    number.source = std::string_view(
        number.source.data(),
        static_cast<std::size_t>(token_.source.data() + token_.source.size() - number.source.data()));
    advance();
  }

  static bool admits(FieldKind kind, Operator op) {
    const bool matching = op == Operator::contains || op == Operator::contains_not;
    if (op == Operator::equal || op == Operator::not_equal) return true;
    if (kind == FieldKind::text) return matching;
    return kind != FieldKind::truth && !matching;
  }

  std::string unknown_field() const {
    const std::string_view nearest = nearest_field_name(token_.source);
    const std::string hint = nearest.empty() ? fmt::format("the fields are {}", field_names())
                                             : fmt::format("did you mean \"{}\"?", nearest);
    return fmt::format("\"{}\" is not a field; {}", token_.source, hint);
  }

  std::string missing_operator(const Field& field) const {
    return fmt::format("expected {} after \"{}\"", operators(field.kind), field_source_);
  }

  std::string bad_operator(const Field& field) const {
    const std::string_view what = field.kind == FieldKind::text    ? "a text"
                                  : field.kind == FieldKind::truth ? "true or false"
                                                                   : "a number";
    return fmt::format("\"{}\" is {}: expected {}", field_source_, what, operators(field.kind));
  }

  static std::string_view operators(FieldKind kind) {
    if (kind == FieldKind::text) return "~, !~, = or !=";
    if (kind == FieldKind::truth) return "= or !=";
    return "=, !=, <, <=, > or >=";
  }

  std::string after_value() const {
    if (token_.kind == TokenKind::word && !find_field(token_.source)) {
      return "expected \"and\", \"or\" or the end; a value of several words needs quotes";
    }
    return "expected \"and\", \"or\" or the end";
  }

  static Result<NodePtr> leaf(Comparison comparison) {
    auto node = std::make_shared<ExpressionNode>();
    node->comparison = std::move(comparison);
    return node;
  }

  void advance() { token_ = lexer_.next(); }

  Result<NodePtr> wrong(const std::string& what) const { return wrong_at(token_.source, what); }

  Result<NodePtr> wrong_at(std::string_view where, const std::string& what) const {
    const std::string_view before = text_.substr(0, static_cast<std::size_t>(where.data() - text_.data()));
    std::string shown(text_);
    for (char& c : shown) {
      if (static_cast<unsigned char>(c) < ' ') c = ' ';  // a line break would part it from its mark
    }
    const std::size_t column = characters(before);
    return fail(ErrorCode::usage, "expression, column {}: {}\n  {}\n  {:{}}{:^>{}}", column + 1, what, shown,
                "", column, "", std::max<std::size_t>(characters(where), 1));
  }

  std::string_view text_;
  Lexer lexer_;
  Token token_;
  std::string_view field_source_;
  unsigned depth_ = 0;
};

}  // namespace

Result<NodePtr> parse_expression(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace berth
