#include "berth/render/store_json.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "berth/core/printable.h"
#include "berth/render/json_reader.h"

namespace berth::render {
namespace {

constexpr std::string_view kSixBits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// "": it tells no error. Up to 3.5 the gateway of etcd says it in `error`; from 3.6 on in `message`, beside
/// its `code`. In a stream all versions say it in the `message` of an object `error`.
std::string error_in(const Json& answer) {
  const auto error = answer.find("error");
  if (error != answer.end())
    return error->is_object() ? text_at(*error, "message") : text_at(answer, "error");
  return answer.contains("code") ? text_at(answer, "message") : "";
}

constexpr std::uint8_t kNoSixBits = 64;
constexpr std::array<std::uint8_t, 256> kValueOfSixBits = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoSixBits);
  for (std::size_t i = 0; i < kSixBits.size(); ++i)
    values[static_cast<unsigned char>(kSixBits[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

}  // namespace

std::string in_base64(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8U | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      made += i + k > text.size() ? '=' : kSixBits[bits >> (18U - 6U * k) & 63U];
  }
  return made;
}

std::optional<std::string> out_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string made;
  made.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (const char each : text) {
    const std::uint8_t value = kValueOfSixBits[static_cast<unsigned char>(each)];
    if (value == kNoSixBits) return std::nullopt;
    bits = bits << 6U | value;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    made += static_cast<char>(bits >> have & 255U);
  }
  return made;
}

Json request_of_range(std::string_view key) {
  return {{"key", in_base64(key)}};
}

Json request_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  end.back() = static_cast<char>(end.back() + 1);
  Json range = request_of_range(prefix);
  range["range_end"] = in_base64(end);
  return range;
}

std::string on_one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_at(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::uint64_t number_at(const Json& object, std::string_view key) {
  const std::string text = text_at(object, key);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::unexpected<Error> is_not_etcd() {
  return fail(ErrorCode::failure, "what it answers is not etcd's");
}

Result<Json> store_answer(std::string_view json) {
  if (shape_of(json).levels > kDeepestOfStore) return is_not_etcd();
  Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) return is_not_etcd();
  if (const std::string error = error_in(parsed); !error.empty())
    return fail(ErrorCode::failure, fmt::format("etcd says: {}", printable(error)));
  return parsed;
}

std::string error_told(std::string_view json) {
  const auto answer = store_answer(json);
  return answer ? "" : answer.error().message;
}

}  // namespace berth::render
