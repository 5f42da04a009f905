#include "berth/device/device_readings.h"

#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "berth/verdict/test/machine.h"

namespace berth::device_readings_test {
namespace {

/// The members of a struct in device.h that are readings of the table, in their order; of Memory
/// and Health their members.
std::vector<std::string> members_of(const std::string& type) {
  std::ifstream file(BERTH_SOURCE_DIR "/src/core/device/device.h");
  REQUIRE(file);
  const std::regex member(R"(^  (\S.*?) (\w+)( = \S+|\{\S+\})?; *$)");
  std::vector<std::string> names;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "struct " + type + " {") inside = true;
    if (line == "};") inside = false;
    std::smatch parts;
    line = line.substr(0, line.find("///"));
    if (!inside || line.contains("operator") || !std::regex_match(line, parts, member)) continue;
    const std::string kind = parts[1];
    if (kind == "Memory" || kind == "Health") {
      for (const std::string& name : members_of(kind)) names.push_back(name);
    } else if (kind != "std::optional<MigPlacement>" && !kind.starts_with("Reading<std::vector<") &&
               parts[2] != "energy_mj") {
      names.push_back(parts[2]);
    }
  }
  return names;
}

TEST_CASE("the table has a row for each reading of a device, in the order of the members") {
  Device device;
  std::vector<std::string> names;
  const void* last = nullptr;
  for (const DeviceReading& row : device_readings()) {
    CAPTURE(row.name);
    const void* at = with_value(row, device, [](const auto& value) -> const void* { return &value; });
    CHECK(std::less<>()(last, at));
    last = at;
    names.emplace_back(row.name);
  }
  CHECK(names.size() > 30);
  CHECK(names == members_of("Device"));
}

TEST_CASE("a row is found by its name, wherever the search begins") {
  const auto rows = device_readings();
  for (std::size_t from = 0; from <= rows.size(); ++from) {
    for (std::size_t at = 0; at < rows.size(); ++at) {
      std::size_t next = from;
      CHECK(find_reading(rows[at].name, next) == &rows[at]);
      CHECK(next == at + 1);
    }
    std::size_t next = from;
    CHECK(find_reading("spin", next) == nullptr);
    CHECK(next == from);
  }
}

const DeviceReading& row_of(std::string_view name) {
  std::size_t next = 0;
  const DeviceReading* row = find_reading(name, next);
  REQUIRE(row != nullptr);
  return *row;
}

TEST_CASE("a value is a number in the unit of its kind, or a text, or not known") {
  Device device = test::gpu(3);
  device.power_mw = 249'500;
  device.health.row_remap_pending = true;
  const auto number = [&](std::string_view name) { return number_of(row_of(name), device); };
  const auto text = [&](std::string_view name) { return text_of(row_of(name), device); };
  CHECK(number("index") == 3.0);
  CHECK(number("power_mw") == 249.5);
  CHECK(number("total_bytes") == 40.0 * test::kGiB);
  CHECK(number("compute_capability") == 80.0);
  CHECK(number("row_remap_pending") == 1.0);
  CHECK_FALSE(number("row_remap_failed"));
  CHECK_FALSE(number("name"));
  CHECK_FALSE(number("compute_mode"));
  CHECK(text("name") == "NVIDIA A100-SXM4-40GB");
  CHECK(text("state") == "ok");
  CHECK(text("compute_mode") == "shared");
  CHECK_FALSE(text("state_reason"));
  CHECK_FALSE(text("power_mw"));
  device.compute_mode.reset();
  CHECK_FALSE(text("compute_mode"));
}

TEST_CASE("rows of one part stand together and are called by it") {
  CHECK(part_of(row_of("power_mw")).empty());
  CHECK(part_of(row_of("kind")) == "memory");
  CHECK(part_of(row_of("free_bytes")) == "memory");
  CHECK(part_of(row_of("row_remap_failed")) == "health");
  CHECK(part_of(row_of("ecc_uncorrected")) == "health");
}

}  // namespace
}  // namespace berth::device_readings_test
