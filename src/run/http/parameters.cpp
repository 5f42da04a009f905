#include <fmt/format.h>

#include "berth/http/answer.h"

namespace berth::http {
namespace {

int value_of_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// %XX is a byte. A + is `plus`: in what forms write it is a blank.
std::optional<std::string> decoded(std::string_view text, char plus) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i] == '+' ? plus : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = value_of_digit(text[i + 1]);
    const int low = value_of_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

std::string encoded(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string safe;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      safe += c;
    } else {
      safe += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return safe;
}

}  // namespace

std::optional<std::string> path_of(std::string_view path) {
  return decoded(path, '+');
}

std::optional<Parameters> parameters_of(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view word = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (word.empty()) continue;
    const auto equals = std::min(word.find('='), word.size());
    const auto name = decoded(word.substr(0, equals), ' ');
    const auto value = decoded(word.substr(std::min(equals + 1, word.size())), ' ');
    if (!name || !value || !parameters.emplace(*name, *value).second) return std::nullopt;
  }
  return parameters;
}

std::string query_of(const Parameters& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters)
    query += fmt::format("{}{}={}", query.empty() ? "?" : "&", encoded(name), encoded(value));
  return query;
}

}  // namespace berth::http
