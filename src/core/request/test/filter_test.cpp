#include "berth/request/request.h"

#include <doctest/doctest.h>

namespace berth::filter_test {
namespace {

TEST_CASE("a filter is short for a condition") {
  const auto text = [](std::string_view name, std::string_view value) { return filter(name, value)->text(); };
  CHECK(text("name", "A100 or T4") == "name ~ \"A100 or T4\"");
  CHECK(text("free", "20G") == "free >= 20G");
  CHECK(text("total", "1048576B") == "total >= 1048576B");
  CHECK(text("util", "5%") == "util <= 5");
  CHECK(text("mem_util", "5") == "mem_util <= 5");
  CHECK(text("power", "100W") == "power <= 100");
  CHECK(text("temp", "70C") == "temp <= 70");
}

TEST_CASE("a value that is none is named, and so is a filter that is none") {
  CHECK(filter("free", "lots").error().message.find("\"lots\" is not an amount of memory") == 0);
  for (const char* value : {"", "-1", "5.5", "5W", "hot"})
    CHECK(filter("util", value).error().message == "must be a whole number, 0 or more");
  CHECK(filter("fans", "3").error().code == ErrorCode::usage);
}

}  // namespace
}  // namespace berth::filter_test
