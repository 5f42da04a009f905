#include "berth/queue/schedule.h"

#include <doctest/doctest.h>

#include <vector>

namespace berth::expected_run_time_test {
namespace {

constexpr Moment kMinute = 60, kHour = 3600, kDay = 86'400;

std::optional<Expectation> expected(std::optional<Moment> limit, const std::vector<Moment>& lasted,
                                    Expect expect = Expect::runs) {
  return expectation_of(limit, lasted, {.expect = expect});
}

TEST_CASE("where run times do not count, nothing is expected") {
  CHECK(expected(kHour, {kHour}, Expect::none) == std::nullopt);
}

TEST_CASE("a request of which nothing is known is expected to last six hours, and keeps what is assumed") {
  CHECK(expected({}, {}) == Expectation{6 * kHour, {}});
  CHECK(expected({}, {}, Expect::limits) == Expectation{6 * kHour, {}});
}

TEST_CASE("a limit alone counts from a minute to a day") {
  CHECK(expected(2 * kHour, {}) == Expectation{2 * kHour, {}});
  CHECK(expected(1, {}) == Expectation{kMinute, {}});
  CHECK(expected(9 * kDay, {}) == Expectation{kDay, {}});
}

TEST_CASE(
    "earlier runs count where the site says so, by what three of four of the last five did not exceed") {
  const std::vector<Moment> lasted{9 * kHour, 9 * kHour, kHour, 2 * kHour, 3 * kHour, 8 * kHour, 4 * kHour};
  CHECK(expected({}, lasted)->expected_s == 4 * kHour);
  CHECK(expected({}, {kHour, 2 * kHour})->expected_s == 2 * kHour);
  CHECK(expected({}, lasted, Expect::limits) == Expectation{6 * kHour, {}});
}

TEST_CASE("what is kept is three times what nine of ten of the last twenty took, from the first on") {
  CHECK(expected({}, {2 * kHour}) == Expectation{2 * kHour, 6 * kHour});
  std::vector<Moment> lasted(30, 50 * kDay);
  for (Moment hours = 1; hours <= 20; ++hours) lasted.push_back(hours * kHour);
  CHECK(expected({}, lasted)->likely_s == 3 * 18 * kHour);
}

TEST_CASE("of a limit and earlier runs the shorter counts, and the limit is what is kept") {
  CHECK(expected(3 * kHour, {kHour}) == Expectation{kHour, {}});
  CHECK(expected(kHour, {3 * kHour}) == Expectation{kHour, {}});
}

TEST_CASE("with earlier runs, ten minutes are the least and a day the most") {
  CHECK(expected({}, {kMinute})->expected_s == 10 * kMinute);
  CHECK(expected(kMinute, {kHour})->expected_s == 10 * kMinute);
  CHECK(expected({}, {20 * kDay})->expected_s == kDay);
}

TEST_CASE("the words of the site file are read, and no others") {
  for (const Expect expect : {Expect::none, Expect::limits, Expect::runs})
    CHECK(expect_from_text(to_text(expect)) == expect);
  CHECK(expect_from_text("all").error().message == "must be \"none\", \"limits\" or \"runs\"");
}

}  // namespace
}  // namespace berth::expected_run_time_test
