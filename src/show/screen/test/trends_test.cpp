#include "berth/screen/model/top.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::view::trends_test {
namespace {

constexpr std::int64_t kNoon = 1'795'262'400;

/// A machine with one GPU at this load.
Hosts at_load(unsigned load) {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(1);
  report->facts.snapshot.devices[0].utilization_percent = load;
  return {std::make_shared<Host>(Host{.name = "gpu1", .seen_s = kNoon, .report = std::move(report)})};
}

const Trend& only(const Trends& trends) {
  REQUIRE(trends.size() == 1);
  return trends.begin()->second;
}

TEST_CASE("a look counts until the next one, and a machine that is silent has a gap") {
  Trends trends;
  remember(trends, at_load(10), kNoon, 2);
  remember(trends, at_load(30), kNoon + 4, 2);
  remember(trends, at_load(90), kNoon + 60, 2);
  const Trend& trend = only(trends);
  CHECK(mean_in(trend, &TrendPoint::load, kNoon, kNoon + 4) == 10U);
  CHECK(mean_in(trend, &TrendPoint::load, kNoon, kNoon + 6) == 16U);
  CHECK_FALSE(mean_in(trend, &TrendPoint::load, kNoon + 10, kNoon + 60).has_value());
  CHECK(mean_in(trend, &TrendPoint::load, kNoon + 60, kNoon + 61) == 90U);
  CHECK(trend.back().memory.has_value());
}

TEST_CASE("six hours of looks stay within their bound, and keep their means") {
  Trends trends;
  for (std::int64_t i = 0; i < 6 * 1800; ++i) remember(trends, at_load(i < 5400 ? 20 : 80), kNoon + 2 * i, 2);
  const Trend& trend = only(trends);
  CHECK(trend.size() <= kTrendPoints);
  CHECK(trend.size() >= kTrendLooks);
  CHECK(mean_in(trend, &TrendPoint::load, kNoon + 9000, kNoon + 9600) == 20U);
  CHECK(mean_in(trend, &TrendPoint::load, kNoon + 12'000, kNoon + 21'600) == 80U);
  for (std::size_t i = 1; i < trend.size(); ++i) CHECK(trend[i - 1].until_s <= trend[i].from_s);
}

TEST_CASE("what a host does not tell is not known, and a clock that is set back begins anew") {
  Trends trends;
  Hosts hosts = at_load(50);
  auto report = std::make_shared<HostReport>(*hosts.front()->report);
  report->facts.snapshot.devices[0].state = DeviceState::lost;
  remember(trends, {std::make_shared<Host>(Host{.name = "gpu1", .report = report})}, kNoon, 2);
  CHECK_FALSE(only(trends).back().load.has_value());
  remember(trends, hosts, kNoon - 3600, 2);
  CHECK(only(trends).size() == 1);
  auto down = std::make_shared<Host>(*hosts.front());
  down->error = "no answer";
  remember(trends, {down}, kNoon, 2);
  CHECK(only(trends).size() == 1);
}

TEST_CASE("the line of the last loads has one bar each") {
  Trends trends;
  for (const unsigned load : {0U, 50U, 100U}) remember(trends, at_load(load), kNoon + load, 50);
  CHECK(trend_text(only(trends), 12, false) == "▁▅█");
  CHECK(trend_text(only(trends), 2, true) == "=#");
}

}  // namespace
}  // namespace berth::view::trends_test
