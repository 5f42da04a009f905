#include "berth/site/toml_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/printable.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"

namespace berth::site {
namespace {

std::string_view line_of(std::string_view text, std::size_t line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

bool is_bare_text(std::string_view value) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("-_:./+%~@").contains(c);
  };
  return !value.empty() && std::ranges::all_of(value, fits);
}

// "2m" is two minutes, and "2M" two MiB.
std::string_view kind_of(std::string_view value) {
  const bool is_size = bytes_from_text(value).has_value();
  const bool is_time = seconds_from_text(value).has_value();
  const bool is_capital = value.back() >= 'A' && value.back() <= 'Z';
  if (is_time && !(is_size && is_capital)) return "a time";
  return is_size ? "a size" : "a text";
}

}  // namespace

std::string words_of_bad_line(std::string_view text, std::size_t line, std::string_view said) {
  std::string_view statement = line_of(text, line);
  statement = trimmed(statement.substr(0, statement.find('#')));
  const std::size_t sign = statement.find('=');
  if (sign == std::string_view::npos) return std::string(said);
  const std::string_view key = trimmed(statement.substr(0, sign));
  const std::string_view value = trimmed(statement.substr(sign + 1));
  if (!is_bare_text(key) || !is_bare_text(value)) return std::string(said);
  const std::string_view kind = kind_of(value);
  return fmt::format("{} = {}: {} needs quotes: {} = \"{}\"", key, value, kind, key, value);
}

std::string unknown_key(std::string_view key, std::string_view where, std::span<const std::string_view> known,
                        std::string_view list) {
  const std::string instead = instead_of(key, known);
  return fmt::format("unknown key '{}'{}{}{}", printable(key), where.empty() ? "" : " in ", where,
                     instead.empty() ? fmt::format("; {} lists the keys", list) : instead);
}

}  // namespace berth::site
