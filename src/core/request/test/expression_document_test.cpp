// docs/expressions.md is true: its examples, its mistakes, and its table of fields.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "berth/request/expression_tree.h"
#include "berth/verdict/test/machine.h"

namespace berth::expression_document_test {
namespace {

using Lines = std::vector<std::string>;

Lines document() {
  std::ifstream file(BERTH_SOURCE_DIR "/docs/expressions.md");
  REQUIRE(file);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The lines of the block that is fenced as ```NAME.
Lines block(const std::string& name) {
  Lines lines;
  bool inside = false;
  for (const std::string& line : document()) {
    if (inside && line == "```") return lines;
    if (inside) lines.push_back(line);
    inside |= line == "```" + name;
  }
  FAIL("docs/expressions.md has no block ", name);
  return lines;
}

/// The GPU that the document describes.
Device described() {
  Device device = test::gpu(3);
  device.memory.used_bytes = 28 * test::kGiB;
  device.utilization_percent = 50;
  device.temperature_c = 61;
  device.power_mw = 249'500;
  device.sm_clock_mhz = 1410;
  device.processes->push_back(test::process(1, test::kGiB));
  return device;
}

bool holds(const std::string& text) {
  const Result<Expression> expression = Expression::parse(text);
  REQUIRE_MESSAGE(expression, text);
  const Device device = described();
  const HostFacts host{"gpu1", {"nvlink", "room:b12"}};
  return !expression->unmet_by(DeviceFacts{device, 12 * test::kGiB, &host});
}

TEST_CASE("the document's examples hold or not, as it says") {
  for (const std::string& text : block("holds")) CHECK_MESSAGE(holds(text), text);
  for (const std::string& text : block("does not hold")) CHECK_MESSAGE(!holds(text), text);
}

TEST_CASE("the document's mistakes are refused in its words") {
  std::string text, message;
  std::size_t count = 0;
  const auto compare = [&] {
    if (text.empty()) return;
    const Result<Expression> parsed = Expression::parse(text);
    REQUIRE_MESSAGE(!parsed, text);
    CHECK(parsed.error().message + "\n" == message);
    ++count;
  };
  for (const std::string& line : block("errors")) {
    if (line.starts_with("$ ")) {
      compare();
      text = line.substr(2);
      message.clear();
    } else {
      message += line + "\n";
    }
  }
  compare();
  CHECK(count == 6);
}

TEST_CASE("the document's table has each field, and true aliases") {
  std::set<std::string> names;
  for (const std::string& line : document()) {
    if (!line.starts_with("| `") || line.starts_with("| `K")) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    CHECK_MESSAGE(names.insert(name).second, name);
    const std::size_t second = line.find('|', 2);
    const std::string aliases = line.substr(second, line.find('|', second + 1) - second);
    for (std::size_t at = aliases.find('`'); at != std::string::npos;) {
      const std::size_t end = aliases.find('`', at + 1);
      const std::string alias = aliases.substr(at + 1, end - at - 1);
      CHECK_MESSAGE(find_field(alias) == find_field(name), alias);
      at = aliases.find('`', end + 1);
    }
  }
  std::set<std::string> fields;
  std::istringstream known(field_names());
  for (std::string name; std::getline(known >> std::ws, name, ',');) fields.insert(name);
  CHECK(names == fields);
}

}  // namespace
}  // namespace berth::expression_document_test
