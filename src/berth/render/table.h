#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/render/text.h"

namespace berth::render {

enum class Align { left, right };

struct Column {
  std::string_view title;
  Align align = Align::left;
  std::size_t least = 0;    ///< may be cut down to this many columns; 0: never cut
  unsigned drop_order = 0;  ///< where the table is too wide, 1 goes first; 0: stays
};

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

/// What a cell says of a reading that is not known.
inline constexpr std::string_view kUnknown = "-";

using Row = std::vector<Cell>;

/// The lines of a table, its titles first, as parts that stand side by side.
/// No wider than style.width: columns are first dropped in their order, then cut from the right-most
/// that may be. A line has no trailing space. Where even that does not suffice the lines are longer.
std::vector<Row> table_lines(std::vector<Column> columns, std::vector<Row> rows, const Style& style);

/// The same as text.
std::string table(std::vector<Column> columns, std::vector<Row> rows, const Style& style);

}  // namespace berth::render
