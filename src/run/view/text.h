#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/text.h"

namespace berth::view {

/// Every document is an object that begins with "kind" and "version"; docs/schema has a schema for
/// each kind. A key is never missing: an unknown value is null. Texts are as `printable_lines`
/// gives them.
enum class Layout {
  lines,  ///< indented, for files and people
  line,   ///< one line, for streams
};

/// So wide that nothing is cut or wrapped, for output that does not go to a terminal.
inline constexpr unsigned kUnlimited = 100'000;

/// How far a clock is ahead of UTC at this moment, in seconds. It changes where daylight saving
/// begins or ends.
using UtcOffset = std::int32_t (*)(std::int64_t at_s);
inline std::int32_t always_utc(std::int64_t) {
  return 0;
}

/// Everything about the reader that a rendering depends on. The caller passes it in; the code here
/// does not ask the machine.
struct Style {
  unsigned width = 80;  ///< columns
  bool colour = false;
  std::int64_t now_s = 0;               ///< seconds since the epoch
  UtcOffset utc_offset_s = always_utc;  ///< of the reader's clock
};

/// Columns that the text takes on a terminal: wide characters two, combining ones none. Bytes that
/// are no UTF-8 count one each.
std::size_t display_width(std::string_view text);

/// The text cut to `width` columns; the last is "…" if something is missing.
std::string cut(std::string_view text, std::size_t width);

/// The text in ASCII, for terminals and mails that have nothing else: "~" for "…", "?" for other
/// characters.
std::string in_ascii(std::string_view text);

/// "14:02" today, "20 Nov 14:02" on another day of the last months, "2025-11-20" before. "" for 0
/// (unknown).
std::string clock_time(std::int64_t at_s, const Style& style);

/// "since 14:02 (2 h)", "" for 0.
std::string since(std::int64_t at_s, const Style& style);

/// Each has one meaning, and that of the page: good is free, busy is in use, waiting is leased and
/// idle or not yet there, foreign is without a lease, bad is wrong.
enum class Tone { plain, good, waiting, foreign, bad, faint, strong, busy };

/// The text in the colour of `tone`, or as it is if the style has no colours.
std::string toned(std::string_view text, Tone tone, const Style& style);

/// Goes to the beginning of a terminal's line, and clears it.
inline constexpr std::string_view kClearLine = "\r\x1b[K";

/// Makes whole lines safe that are about to be written for people. Each foreign text in them should
/// have gone through `printable` already. In case a caller forgot it, this leaves no control
/// characters but line ends, tabs, the colours of `toned` and kClearLine.
std::string for_terminal(std::string_view text);

/// The words of `text`, broken into lines of `width` columns. All lines begin at column `indent`;
/// the caller fills the first line up to that column.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// The lines, those that are too wide for the reader broken between words. A line that begins with
/// a blank or has colours is laid out already, and stays.
std::string folded(std::string_view lines, const Style& style);

enum class Align { left, right };

struct Column {
  std::string_view title;
  Align align = Align::left;
  std::size_t least = 0;    ///< it may be cut down to this many columns; 0: it is never cut
  unsigned drop_order = 0;  ///< if the table is too wide, 1 is left out first; 0: it stays
};

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

/// The text of a cell whose reading is not known.
inline constexpr std::string_view kUnknown = "-";

using Row = std::vector<Cell>;

/// The lines of a table, its titles first. Each line is a list of parts side by side. At most
/// style.width columns wide. Columns are first left out by their drop_order, and then cut,
/// beginning with the right-most one that may be cut. If even that does not suffice, the lines are
/// longer. A line has no trailing space.
std::vector<Row> table_lines(std::vector<Column> columns, std::vector<Row> rows, const Style& style);

/// The same as text.
std::string table(std::vector<Column> columns, std::vector<Row> rows, const Style& style);

}  // namespace berth::view
