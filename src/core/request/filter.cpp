#include "berth/request/filter.h"

#include <algorithm>
#include <array>

#include "berth/base/fail.h"
#include "berth/base/record.h"
#include "berth/base/units.h"

namespace berth {
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
