#include "berth/view/text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"

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

namespace {

constexpr std::size_t kGap = 2;

std::vector<std::size_t> natural_widths(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = columns[i].title.size();
    for (const Row& row : rows) width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
  }
  return widths;
}

std::size_t excess(const std::vector<std::size_t>& widths, std::size_t limit) {
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
  return total > limit ? total - limit : 0;
}

/// How much too wide the table stays when every column that may be cut is cut.
std::size_t excess_when_cut(const std::vector<Column>& columns, std::vector<std::size_t> widths,
                            std::size_t limit) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].least != 0) widths[i] = std::min(widths[i], columns[i].least);
  }
  return excess(widths, limit);
}

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::vector<std::size_t> widths;
};

void drop_column(Table& table, std::size_t at) {
  const auto offset = static_cast<std::ptrdiff_t>(at);
  table.columns.erase(table.columns.begin() + offset);
  table.widths.erase(table.widths.begin() + offset);
  for (Row& row : table.rows) row.erase(row.begin() + offset);
}

void drop_until_it_fits(Table& table, std::size_t limit) {
  const std::vector<Column>& columns = table.columns;
  while (excess_when_cut(columns, table.widths, limit) > 0) {
    std::size_t first = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const unsigned order = columns[i].drop_order;
      if (order != 0 && (first == columns.size() || order < columns[first].drop_order)) first = i;
    }
    if (first == columns.size()) return;
    drop_column(table, first);
  }
}

/// With the columns and the widths that it is shown with.
Table fitted(std::vector<Column> columns, std::vector<Row> rows, std::size_t limit) {
  std::vector<std::size_t> natural = natural_widths(columns, rows);
  Table table{std::move(columns), std::move(rows), std::move(natural)};
  drop_until_it_fits(table, limit);
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const std::size_t least = table.columns[i].least;
    std::size_t& width = table.widths[i];
    if (least != 0 && width > least) width -= std::min(excess(table.widths, limit), width - least);
  }
  return table;
}

Row titles_of(const std::vector<Column>& columns) {
  Row titles;
  for (const Column& column : columns) titles.push_back({std::string(column.title), Tone::faint});
  return titles;
}

/// Calls `put(spaces, text, tone)` for each cell that shows something. A list of jobs has a hundred
/// thousand: none is copied.
template <class Put>
void each_part(const Table& table, const Row& row, Put put) {
  std::size_t owed = 0;  // spaces due before the next cell: none are left at the end of the line
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::string_view shown = row[i].text;
    std::size_t width = display_width(shown);
    std::string shorter;
    if (width > table.widths[i]) {
      shown = shorter = cut(shown, table.widths[i]);
      width = display_width(shown);
    }
    const std::size_t padding = table.widths[i] - std::min(table.widths[i], width);
    if (table.columns[i].align == Align::right) owed += padding;
    if (!shown.empty()) put(std::exchange(owed, 0), shown, row[i].tone);
    if (table.columns[i].align == Align::left) owed += padding;
    owed += kGap;
  }
}

}  // namespace

std::vector<Row> table_lines(std::vector<Column> columns, std::vector<Row> rows, const Style& style) {
  const Table table = fitted(std::move(columns), std::move(rows), style.width);
  std::vector<Row> lines;
  const auto add = [&](const Row& row) {
    Row& parts = lines.emplace_back();
    each_part(table, row, [&](std::size_t spaces, std::string_view text, Tone tone) {
      if (spaces > 0) parts.push_back({std::string(spaces, ' ')});
      parts.push_back({std::string(text), tone});
    });
  };
  add(titles_of(table.columns));
  for (const Row& row : table.rows) add(row);
  return lines;
}

std::string table(std::vector<Column> columns, std::vector<Row> rows, const Style& style) {
  const Table table = fitted(std::move(columns), std::move(rows), style.width);
  std::string text;
  const auto add = [&](const Row& row) {
    each_part(table, row, [&](std::size_t spaces, std::string_view shown, Tone tone) {
      text.append(spaces, ' ');
      if (style.colour && tone != Tone::plain)
        text += toned(shown, tone, style);
      else
        text += shown;
    });
    text += '\n';
  };
  add(titles_of(table.columns));
  for (const Row& row : table.rows) add(row);
  return text;
}

}  // namespace berth::view
