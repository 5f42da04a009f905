#include "berth/render/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "berth/core/units.h"

namespace berth::render {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  // bytes
  bool valid = true;
};

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return {lead, 1, false};
  char32_t value = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return {lead, 1, false};
    value = (value << 6U) | (byte(at + i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kLeast[length] || value > 0x10ffff || surrogate) return {lead, 1, false};
  return {value, length, true};
}

struct Range {
  char32_t first, last;
};
// The blocks that people's and programs' names are made of; a rare script that is missing shifts a
// column, and no more.
constexpr std::array<Range, 10> kWide{{{0x1100, 0x115f},
                                       {0x2e80, 0x303e},
                                       {0x3041, 0xa4cf},
                                       {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff},
                                       {0xfe30, 0xfe6f},
                                       {0xff00, 0xff60},
                                       {0xffe0, 0xffe6},
                                       {0x1f300, 0x1faff},
                                       {0x20000, 0x3fffd}}};
constexpr std::array<Range, 9> kZero{{{0x0300, 0x036f},
                                      {0x0483, 0x0489},
                                      {0x0591, 0x05bd},
                                      {0x064b, 0x065f},
                                      {0x0e34, 0x0e3a},
                                      {0x200b, 0x200f},
                                      {0x20d0, 0x20ff},
                                      {0xfe00, 0xfe0f},
                                      {0xfe20, 0xfe2f}}};

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, char32_t value) {
  return std::ranges::any_of(ranges, [&](Range r) { return value >= r.first && value <= r.last; });
}

std::size_t width_of(CodePoint point) {
  if (point.value < 0x300) return 1;
  return in(kZero, point.value) ? 0 : in(kWide, point.value) ? 2 : 1;
}

bool is_control(CodePoint point) {
  const char32_t c = point.value;
  // Also the marks that turn the writing direction, which make a line read as what it is not.
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    width += width_of(point);
    at += point.length;
  }
  return width;
}

std::string cut(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (used + width_of(point) > width - 1) break;
    used += width_of(point);
    at += point.length;
  }
  while (at > 0 && text[at - 1] == ' ') --at;
  return std::string(text.substr(0, at)) + "…";
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const std::string_view bytes = text.substr(at, point.length);
    if (point.valid && !is_control(point)) {
      clean += bytes;
    } else {
      for (const char byte : bytes) clean += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    at += point.length;
  }
  return clean;
}

std::string clock_time(std::int64_t at_s, const Style& style) {
  if (at_s == 0) return "";
  using namespace std::chrono;
  const auto local = sys_seconds(seconds(at_s + style.utc_offset_s));
  const auto today = floor<days>(sys_seconds(seconds(style.now_s + style.utc_offset_s)));
  const auto day = floor<days>(local);
  const year_month_day date(day);
  const hh_mm_ss time(local - day);
  const auto hours = static_cast<int>(time.hours().count());
  const auto minutes = static_cast<int>(time.minutes().count());
  if (day == today) return fmt::format("{:02}:{:02}", hours, minutes);
  const unsigned month = static_cast<unsigned>(date.month());
  if (day > today - days(180) && day <= today + days(1)) {
    return fmt::format("{} {} {:02}:{:02}", static_cast<unsigned>(date.day()), kMonths[month - 1], hours,
                       minutes);
  }
  return fmt::format("{}-{:02}-{:02}", static_cast<int>(date.year()), month,
                     static_cast<unsigned>(date.day()));
}

std::string since(std::int64_t at_s, const Style& style) {
  if (at_s == 0) return "";
  // A clock set back must not show a negative time.
  const std::int64_t passed = std::max<std::int64_t>(0, style.now_s - at_s);
  return fmt::format("since {} ({})", clock_time(at_s, style), duration_for_people(passed));
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

std::string toned(std::string_view text, Tone tone, const Style& style) {
  if (!style.colour || tone == Tone::plain || text.empty()) return std::string(text);
  constexpr std::array<std::string_view, 7> kCodes{"", "32", "33", "35", "31", "2", "1"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(tone)], text);
}

}  // namespace berth::render
