#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/view/text.h"

namespace berth::view {

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
