#include "berth/base/record.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "property.h"

namespace berth::units_test {
namespace {

TEST_CASE("amounts of memory are read in powers of 1024, and of 1000 with a B") {
  const std::map<std::string, std::uint64_t> rows{
      {"20G", 20ULL << 30}, {"512MiB", 512ULL << 20}, {"1.5 GB", 1'500'000'000}, {"0", 0}, {"0.5k", 512},
      {"2Ti", 2ULL << 40},  {" 3 gib ", 3ULL << 30},  {"10MB", 10'000'000},      {"7B", 7}};
  for (const auto& [text, bytes] : rows) CHECK_MESSAGE(bytes_from_text(text) == bytes, text);
}

TEST_CASE("what is no amount of memory is refused with what is allowed") {
  for (const std::string text :
       {"", " ", "G", "20X", "-1G", "20 G B", "1e3", "inf", "nan", "0x10", "20G,", "9999999999999T", "."}) {
    const Result<std::uint64_t> bytes = bytes_from_text(text);
    REQUIRE_MESSAGE(!bytes, text);
    CHECK(bytes.error().code == ErrorCode::usage);
  }
  CHECK(bytes_from_text("20X").error().message ==
        "\"20X\" is not an amount of memory: expected a number and K, M, G or T (powers of 1024) or KB, MB, "
        "GB or TB "
        "(powers of 1000), like 20G");
}

TEST_CASE("of a number without a unit people are asked what they mean, and programs are not") {
  const std::map<std::string, std::string> sizes{{"20", "20G or 20M"},
                                                 {" 1.5 ", "1.5G or 1.5M"},
                                                 {"8192", "8192M or 8192K"},
                                                 {"1048576", "1048576B or 1048576K"}};
  for (const auto& [text, meanings] : sizes) {
    const auto bytes = bytes_from_text(text);
    REQUIRE_FALSE(bytes);
    CHECK(bytes.error().code == ErrorCode::usage);
    CHECK(bytes.error().message.ends_with(" of what? write " + meanings));
  }
  const std::map<std::string, std::string> times{
      {"2", "2h or 2m"}, {"24", "24h or 24m"}, {"90", "90s or 90m"}, {"2:30", "2h30m or 2m30s"}};
  for (const auto& [text, meanings] : times)
    CHECK(seconds_from_text(text).error().message == text + " of what? write " + meanings);

  CHECK(bytes_from_text("20", Unitless::is_base) == 20);
  CHECK(seconds_from_text("7200", Unitless::is_base) == 7200);
  CHECK_FALSE(seconds_from_text("2:30", Unitless::is_base));
}

TEST_CASE("times are read in seconds, minutes, hours and days") {
  const std::map<std::string, std::int64_t> rows{
      {"30s", 30},       {"10m", 600},         {"10 min", 600},        {"0:00:07", 7},
      {"2:30:00", 9000}, {"36:00:00", 129600}, {"1-12:00:01", 129601}, {"0-00:05:00", 300},
      {"4h", 4 * 3600},  {"1.5h", 5400},       {"2d", 172800},         {"0", 0},
      {"1h30m", 5400},   {"1 h 30 min", 5400}, {"5minutes", 300},      {"2 days 1hour", 176400}};
  for (const auto& [text, seconds] : rows) CHECK_MESSAGE(seconds_from_text(text) == seconds, text);
  for (const std::string text : {"",           "h",        "-4h",           "4w",         "4h30",
                                 "h30m",       "30 4h",    "9e9d9e9d",      "soon",       ":",
                                 "1:",         ":30",      "1:2:3",         "1:60:00",    "1:00:60",
                                 "1:00:00:00", "-1:00:00", "1--1:00:00",    "1-24:00:00", "1-1:00:00",
                                 "1-12",       "1-12:30",  "1234567:00:00", "1h:00:00",   "1:00:00h"})
    CHECK_MESSAGE(!seconds_from_text(text), text);
}

TEST_CASE("amounts are shown with the digits that people read") {
  const std::map<std::uint64_t, std::string> rows{{0, "0 B"},
                                                  {1000, "1000 B"},
                                                  {1024, "1 KiB"},
                                                  {512ULL << 20, "512 MiB"},
                                                  {(20ULL << 30) - 1, "20 GiB"},
                                                  {12'025'908'429, "11.2 GiB"},
                                                  {81'559ULL << 20, "79.6 GiB"},
                                                  {(1ULL << 40) - 1, "1 TiB"},
                                                  {144ULL << 30, "144 GiB"},
                                                  {1'000ULL << 20, "1000 MiB"}};
  for (const auto& [bytes, text] : rows) CHECK(bytes_for_people(bytes) == text);
  CHECK(bytes_side_by_side(11ULL << 30, 20ULL << 30) ==
        std::pair<std::string, std::string>("11 GiB", "20 GiB"));
  CHECK(bytes_side_by_side((20ULL << 30) - (3ULL << 20), 20ULL << 30) ==
        std::pair<std::string, std::string>("20477 MiB", "20480 MiB"));
  CHECK(bytes_side_by_side(5, 5).first == "5 B");
}

TEST_CASE("durations are shown in the unit that people think in, rounded down") {
  const std::map<std::int64_t, std::string> rows{{-3, "0 s"},     {12, "12 s"},      {59, "59 s"},
                                                 {60, "1 min"},   {3599, "59 min"},  {2 * 3600, "2 h"},
                                                 {86400, "24 h"}, {3 * 86400, "3 d"}};
  for (const auto& [seconds, text] : rows) CHECK(duration_for_people(seconds) == text);
  CHECK(duration_for_people(std::chrono::milliseconds(250)) == "250 ms");
  CHECK(duration_for_people(std::chrono::milliseconds(3999)) == "3 s");
}

TEST_CASE("a time is said as it may be asked for, in the largest unit that says it exactly") {
  for (const auto& [seconds, text] : std::map<std::int64_t, std::string>{
           {0, "0s"}, {59, "59s"}, {90, "90s"}, {3600, "1h"}, {5400, "90m"}, {7200, "2h"}, {172800, "2d"}}) {
    CHECK(time_for_people(seconds) == text);
    CHECK(seconds_from_text(text) == seconds);
  }
}

TEST_CASE("units keep their promises on random input") {
  CHECK(rc::check("different amounts side by side never read alike", [](std::uint64_t a, std::uint64_t b) {
    const auto [first, second] = bytes_side_by_side(a, b);
    RC_ASSERT((first == second) == (a == b));
  }));
  CHECK(rc::check("neighbouring amounts side by side never read alike", [](std::uint64_t a) {
    const auto [first, second] = bytes_side_by_side(a, a + 1);
    RC_ASSERT(first != second);
  }));
  holds_for_any("a whole number of any unit is exact", [] {
    const auto count = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
    RC_ASSERT(bytes_from_text(std::to_string(count) + "M").value() == count << 20);
    RC_ASSERT(bytes_from_text(std::to_string(count) + "GB").value() == count * 1'000'000'000);
  });
}

}  // namespace
}  // namespace berth::units_test
