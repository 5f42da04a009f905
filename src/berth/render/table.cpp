#include "berth/render/table.h"

#include <algorithm>
#include <numeric>

namespace berth::render {
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

void drop_column(std::vector<Column>& columns, std::vector<Row>& rows, std::size_t at) {
  const auto offset = static_cast<std::ptrdiff_t>(at);
  columns.erase(columns.begin() + offset);
  for (Row& row : rows) row.erase(row.begin() + offset);
}

void drop_until_it_fits(std::vector<Column>& columns, std::vector<Row>& rows, std::size_t limit) {
  while (excess_when_cut(columns, natural_widths(columns, rows), limit) > 0) {
    std::size_t first = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const unsigned order = columns[i].drop_order;
      if (order != 0 && (first == columns.size() || order < columns[first].drop_order)) first = i;
    }
    if (first == columns.size()) return;
    drop_column(columns, rows, first);
  }
}

Row line(const std::vector<Column>& columns, const std::vector<std::size_t>& widths, const Row& row) {
  Row parts;
  std::size_t owed = 0;  // spaces due before the next cell: none are left at the end of the line
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::string shown = cut(row[i].text, widths[i]);
    const std::size_t width = display_width(shown);
    const std::size_t padding = widths[i] - std::min(widths[i], width);
    if (columns[i].align == Align::right) owed += padding;
    if (!shown.empty()) {
      if (owed > 0) parts.push_back({std::string(owed, ' ')});
      parts.push_back({std::move(shown), row[i].tone});
      owed = 0;
    }
    if (columns[i].align == Align::left) owed += padding;
    owed += kGap;
  }
  return parts;
}

}  // namespace

std::vector<Row> table_lines(std::vector<Column> columns, std::vector<Row> rows, const Style& style) {
  drop_until_it_fits(columns, rows, style.width);
  std::vector<std::size_t> widths = natural_widths(columns, rows);
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (columns[i].least == 0 || widths[i] <= columns[i].least) continue;
    widths[i] -= std::min(excess(widths, style.width), widths[i] - columns[i].least);
  }
  Row titles;
  for (const Column& column : columns) titles.push_back({std::string(column.title), Tone::faint});
  std::vector<Row> lines{line(columns, widths, titles)};
  for (const Row& row : rows) lines.push_back(line(columns, widths, row));
  return lines;
}

std::string table(std::vector<Column> columns, std::vector<Row> rows, const Style& style) {
  std::string text;
  for (const Row& parts : table_lines(std::move(columns), std::move(rows), style)) {
    for (const Cell& part : parts) text += toned(part.text, part.tone, style);
    text += "\n";
  }
  return text;
}

}  // namespace berth::render
