#include "berth/base/base64.h"

#include <array>
#include <cstdint>

namespace berth {
namespace {

constexpr std::string_view kSixBits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

}  // namespace berth
