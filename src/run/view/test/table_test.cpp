#include "berth/view/text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "property.h"

namespace berth::view::table_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

const std::vector<Column> kColumns{
    {"GPU", Align::right}, {"NAME", Align::left, 6}, {"POWER", Align::right, 0, 1}, {"STATE", Align::left}};

std::vector<Row> rows() {
  return {{{"0"}, {"RTX A6000"}, {"22W"}, {"free"}}, {{"10"}, {"T4"}, {""}, {"leased 李明"}}};
}

TEST_CASE("columns line up, and no line ends in spaces") {
  CHECK(table(kColumns, rows(), Style{.width = 80}) ==
        "GPU  NAME       POWER  STATE\n"
        "  0  RTX A6000    22W  free\n"
        " 10  T4                leased 李明\n");
}

TEST_CASE("where it is too wide, columns go in their order, then the widest that may be is cut") {
  CHECK(table(kColumns, rows(), Style{.width = 29}) ==
        "GPU  NAME       STATE\n"
        "  0  RTX A6000  free\n"
        " 10  T4         leased 李明\n");
  CHECK(table(kColumns, rows(), Style{.width = 25}) ==
        "GPU  NAME     STATE\n"
        "  0  RTX A6…  free\n"
        " 10  T4       leased 李明\n");
}

TEST_CASE("colour does not disturb the columns") {
  auto coloured = rows();
  coloured[0][3].tone = Tone::good;
  const auto lines = lines_of(table(kColumns, coloured, Style{.width = 80, .colour = true}));
  CHECK(lines[1] == "  0  RTX A6000    22W  \x1b[32mfree\x1b[0m");
}

TEST_CASE("no line is wider than the terminal, wherever there is room for the columns that stay") {
  holds_for_any("fits", [] {
    const auto width = *rc::gen::inRange(40U, 120U);
    const std::vector<Column> columns{
        {"A", Align::left, 8}, {"B", Align::right, 0, 1}, {"C", Align::left, 8}, {"D", Align::right, 0, 2}};
    std::vector<Row> cells;
    for (int i = 0; i < 3; ++i) {
      Row row;
      for (int j = 0; j < 4; ++j) {
        row.push_back({*rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab c")))});
      }
      cells.push_back(row);
    }
    for (const std::string& line : lines_of(table(columns, cells, Style{.width = width}))) {
      RC_ASSERT(display_width(line) <= width);
    }
  });
}

}  // namespace
}  // namespace berth::view::table_test
