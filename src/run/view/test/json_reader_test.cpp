#include "berth/view/json.h"

#include <doctest/doctest.h>

namespace berth::view::json_reader_test {
namespace {

template <class Read>
std::string fault_after(const char* value, Read read) {
  Json json;
  json["key"] = Json::parse(value);
  std::string fault;
  read(JsonReader(json, fault, "document"));
  return fault;
}

TEST_CASE("a value that is not what it must be is a fault that names its place") {
  const auto text = [](const JsonReader& json) { (void)json.text("key"); };
  const auto flag = [](const JsonReader& json) { (void)json.flag("key"); };
  const auto decimal = [](const JsonReader& json) { (void)json.maybe_decimal("key"); };
  const auto time = [](const JsonReader& json) { (void)json.time("key"); };
  const auto texts = [](const JsonReader& json) { (void)json.texts("key"); };
  const auto each = [](const JsonReader& json) { json.each("key", [](const JsonReader&) {}); };
  CHECK(fault_after("7", text) == "document.key must be a text");
  CHECK(fault_after("7", flag) == "document.key must be true or false");
  CHECK(fault_after("\"7\"", decimal) == "document.key must be a number");
  CHECK(fault_after("-1", time) == "document.key is no time");
  CHECK(fault_after("\"a\"", texts) == "document.key must be a list of texts, and not so long");
  CHECK(fault_after("[\"a\",7]", texts) == "document.key must be a list of texts");
  CHECK(fault_after("{\"a\":{}}", each) == "document.key must be a list, and not so long");
  CHECK(fault_after("[7]", each) == "document.key must be an object");
  for (void (*read)(const JsonReader&) : {+text, +flag, +decimal, +time, +texts, +each})
    CHECK(fault_after("null", read).empty());
}

TEST_CASE("a list that is too long is not read") {
  Json json;
  json["key"] = std::vector<std::string>(JsonReader::kLongestList + 1, "a");
  std::string fault;
  CHECK(JsonReader(json, fault, "document").texts("key").empty());
  CHECK_FALSE(fault.empty());
}

TEST_CASE("after a fault nothing more is read") {
  const Json json = Json::parse(R"({"good":"a","bad":7,"list":[{"n":1},{"n":"x"},{"n":3}]})");
  std::string fault;
  const JsonReader reader(json, fault, "document");
  CHECK(reader.text("good") == "a");
  int seen = 0;
  reader.each("list", [&seen](const JsonReader& entry) {
    ++seen;
    (void)entry.number<int>("n");
  });
  CHECK(seen == 2);
  CHECK(reader.text("good").empty());
  CHECK(reader.text("bad").empty());
  CHECK(fault == "document.list.n must be a whole number, and not so large");
}

TEST_CASE("brackets in texts do not nest") {
  CHECK(shape_of("[[]]").levels <= 2);
  CHECK(shape_of("[[[]]]").levels == 3);
  CHECK(shape_of(R"(["a",[["b"]]])").levels == 3);
  CHECK(shape_of("[[],[],{},[]]").levels <= 2);
  CHECK(shape_of(R"(["[[[[{{{{"])").levels <= 2);
  CHECK(shape_of(R"(["a\"[[[["])").levels <= 2);
  CHECK(shape_of(R"(["a\\",[[]]])").levels == 3);
}

TEST_CASE("a small document is read unless it is nested deeper than any that Berth reads") {
  const auto nested = [](std::size_t levels) {
    return json_from(R"({"a":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}");
  };
  CHECK(nested(16).is_object());
  CHECK_FALSE(nested(17).is_object());
  CHECK_FALSE(json_from("{").is_object());
}

TEST_CASE("a version is two numbers, and anything else is none") {
  CHECK(version_from_text("12.4", kCuda) == 12'040);
  CHECK(version_text(12'040, kCuda) == "12.4");
  for (const std::string text :
       {"", "12", "12.", ".4", "x.4", "12,4", "-1.0", "10000.0", "12.4x", "12.10", "12.-1", "12.x"}) {
    CAPTURE(text);
    CHECK_FALSE(version_from_text(text, kCuda));
  }
}

}  // namespace
}  // namespace berth::view::json_reader_test
