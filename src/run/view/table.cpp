#include "berth/view/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace berth::view {
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
