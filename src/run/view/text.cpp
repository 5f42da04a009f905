#include "berth/view/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "berth/base/text_match.h"
#include "berth/base/units.h"

namespace berth::view {
namespace {

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

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// In the order of Tone.
constexpr std::array<std::string_view, 8> kTones{"\x1b[0m",  "\x1b[32m", "\x1b[33m", "\x1b[35m",
                                                 "\x1b[31m", "\x1b[2m",  "\x1b[1m",  "\x1b[36m"};

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    // Nearly all that is shown is this.
    if (text[at] >= ' ' && text[at] <= '~') {
      ++width;
      ++at;
      continue;
    }
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

std::string in_ascii(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    plain += point.value < 0x80 ? text[at] : point.value == U'…' ? '~' : '?';
    at += point.length;
  }
  return plain;
}

std::string clock_time(std::int64_t at_s, const Style& style) {
  if (at_s == 0) return "";
  using namespace std::chrono;
  const auto local_at = [&](std::int64_t moment_s) {
    return sys_seconds(seconds(moment_s + style.utc_offset_s(moment_s)));
  };
  const auto local = local_at(at_s);
  const auto today = floor<days>(local_at(style.now_s));
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

std::string toned(std::string_view text, Tone tone, const Style& style) {
  if (!style.colour || tone == Tone::plain || text.empty()) return std::string(text);
  return fmt::format("{}{}{}", kTones[static_cast<std::size_t>(tone)], text, kTones.front());
}

std::string for_terminal(std::string_view text) {
  static constexpr auto kOwn = [] {
    std::array<std::string_view, kTones.size() + 3> own{"\n", "\t", kClearLine};
    std::ranges::copy(kTones, own.begin() + 3);
    return own;
  }();
  return printable(text, kOwn);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  for (const std::string_view word : words_at(text)) {
    const std::size_t length = display_width(word);
    if (column > indent && column + 1 + length > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += length;
  }
  return lines;
}

std::string folded(std::string_view lines, const Style& style) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    const bool is_laid_out = line.starts_with(' ') || line.find_first_of("\r\x1b") != std::string_view::npos;
    text +=
        is_laid_out || display_width(line) <= style.width ? std::string(line) : wrapped(line, style.width, 0);
    if (end < lines.size()) text += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}  // namespace berth::view
