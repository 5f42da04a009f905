#include "berth/base/record.h"

#include <doctest/doctest.h>

#include <rapidcheck.h>

namespace berth::record_test {
namespace {

struct Line {
  std::string section;
  std::string key;
  std::string value;
  bool operator==(const Line&) const = default;
};

Result<std::vector<Line>> lines_of(std::string_view text) {
  std::vector<Line> lines;
  const auto version = read_record(text, "berth-test", [&lines](const RecordLine& line) {
    lines.push_back({std::string(line.section), std::string(line.key), std::string(line.value)});
  });
  if (!version) return std::unexpected(version.error());
  return lines;
}

std::string error_of(std::string_view text) {
  const auto lines = lines_of(text);
  return lines ? "" : lines.error().message;
}

TEST_CASE("a record reads as it was written, section by section") {
  RecordWriter writer("berth-test", 3);
  writer.field("id", "x=1");
  writer.section("process");
  writer.field("pid", 4711);
  writer.field("command", "a\nb\\n\rc");
  const std::string text = std::move(writer).finish();
  CHECK(text == "berth-test 3\nid=x=1\n[process]\npid=4711\ncommand=a\\nb\\\\n\\rc\nend\n");
  CHECK(lines_of(text) == std::vector<Line>{{"", "id", "x=1"},
                                            {"process", "", ""},
                                            {"process", "pid", "4711"},
                                            {"process", "command", "a\nb\\n\rc"}});
  CHECK(read_record(text, "berth-test", [](const RecordLine&) {}) == 3U);
}

TEST_CASE("what is no record is refused with the line where it goes wrong") {
  CHECK(error_of("").contains("line 1"));
  CHECK(error_of("berth-other 1\nend\n").contains("line 1"));
  CHECK(error_of("berth-tent 1\nend\n").contains("line 1"));
  CHECK(error_of("berth-test/1\nend\n").contains("line 1"));
  CHECK(error_of("berth-test x\nend\n").contains("line 1"));
  CHECK(error_of("berth-test 1\nno equals sign\nend\n").contains("line 2"));
  CHECK(error_of("berth-test 1\n=value\nend\n").contains("line 2"));
  CHECK(error_of("berth-test 1\na=1\nb=\\x\nend\n").contains("line 3"));
  CHECK(error_of("berth-test 1\na=\\\nend\n").contains("line 2"));
  CHECK(error_of("berth-test 1\nend\nmore\n").contains("after the end"));
}

TEST_CASE("a record that was cut off anywhere is refused") {
  const std::string text = "berth-test 1\na=1\n[s]\nb=2\nend\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(lines_of(text.substr(0, length)));
  }
  CHECK(error_of("berth-test 1\na=1\n").contains("cut off"));
}

TEST_CASE("any bytes can be a value, and no bytes crash the reader") {
  CHECK(rc::check("a value comes back", [](const std::string& value) {
    RecordWriter writer("berth-test", 1);
    writer.field("key", value);
    const auto lines = lines_of(std::move(writer).finish());
    RC_ASSERT(lines.has_value());
    RC_ASSERT(lines->at(0).value == value);
  }));
  CHECK(rc::check("noise is refused or read",
                  [](const std::string& noise) { (void)lines_of("berth-test 1\n" + noise + "\nend\n"); }));
}

}  // namespace
}  // namespace berth::record_test
