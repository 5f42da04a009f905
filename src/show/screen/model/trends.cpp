#include "berth/screen/model/trends.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "berth/verdict/device_memory.h"

namespace berth::view {
namespace {

constexpr std::int64_t kMinute = 60;
// A look takes a while itself. A longer pause was a machine that did not answer.
constexpr std::int64_t kPatience = 3;

using TrendValue = Reading<unsigned> TrendPoint::*;
constexpr std::array<TrendValue, 2> kTrendValues{&TrendPoint::load, &TrendPoint::memory};

Reading<unsigned> mean_of(std::span<const TrendPoint> points, TrendValue value, std::int64_t from_s,
                          std::int64_t until_s) {
  std::int64_t sum = 0;
  std::int64_t weight = 0;
  for (const TrendPoint& point : points) {
    const std::int64_t shared_s = std::min(point.until_s, until_s) - std::max(point.from_s, from_s);
    if (shared_s <= 0 || !(point.*value)) continue;
    sum += shared_s * *(point.*value);
    weight += shared_s;
  }
  return weight == 0 ? Reading<unsigned>() : Reading<unsigned>(static_cast<unsigned>(sum / weight));
}

/// Makes one point of what is older than the last looks and within a minute.
void thin(Trend& trend) {
  const auto last = static_cast<std::ptrdiff_t>(trend.size() - kTrendLooks);
  Trend thinned;
  for (auto at = trend.begin(); at != trend.begin() + last;) {
    auto end = at + 1;
    while (end != trend.begin() + last && end->until_s - at->from_s <= kMinute) ++end;
    TrendPoint mean{.from_s = at->from_s, .until_s = (end - 1)->until_s};
    for (const TrendValue value : kTrendValues)
      mean.*value = mean_of(std::span(at, end), value, mean.from_s, mean.until_s);
    thinned.push_back(mean);
    at = end;
  }
  // Half of the room is new, so that this is not done at each look.
  constexpr std::size_t kMostOld = kTrendPoints - kTrendLooks - kTrendLooks / 2;
  if (thinned.size() > kMostOld)
    thinned.erase(thinned.begin(), thinned.end() - static_cast<std::ptrdiff_t>(kMostOld));
  thinned.insert(thinned.end(), trend.begin() + last, trend.end());
  trend = std::move(thinned);
}

void add(Trend& trend, TrendPoint point, std::int64_t every_s) {
  if (!trend.empty()) {
    TrendPoint& before = trend.back();
    // A clock that was set back.
    if (point.from_s < before.from_s)
      trend.clear();
    else if (point.from_s <= before.until_s + every_s + kPatience)
      before.until_s = point.from_s;
  }
  std::erase_if(trend, [](const TrendPoint& each) { return each.until_s <= each.from_s; });
  trend.push_back(point);
  if (trend.size() > kTrendPoints) thin(trend);
}

}  // namespace

double memory_share(const Device& device) {
  const auto used = memory_in_use(device.memory);
  const auto lendable = lendable_memory(device);
  if (!used || !lendable || *lendable == 0) return -1;
  return static_cast<double>(*used) / static_cast<double>(*lendable);
}

void remember(Trends& trends, const Hosts& hosts, std::int64_t now_s, std::int64_t every_s) {
  for (const auto& host : hosts) {
    if (!host->report || !host->is_up()) continue;
    for (const Device& device : host->report->facts.snapshot.devices) {
      TrendPoint point{.from_s = now_s, .until_s = now_s + std::max<std::int64_t>(1, every_s)};
      if (device.state == DeviceState::ok) {
        if (device.utilization_percent) point.load = std::min(*device.utilization_percent, 100U);
        if (const double share = memory_share(device); share >= 0)
          point.memory = static_cast<unsigned>(std::lround(100 * std::min(share, 1.0)));
      }
      add(trends[{host->name, device.uuid}], point, every_s);
    }
  }
}

Reading<unsigned> mean_in(const Trend& trend, TrendValue value, std::int64_t from_s, std::int64_t until_s) {
  const auto first =
      std::ranges::partition_point(trend, [&](const TrendPoint& point) { return point.until_s <= from_s; });
  const auto last =
      std::ranges::partition_point(trend, [&](const TrendPoint& point) { return point.from_s < until_s; });
  return first < last ? mean_of(std::span(first, last), value, from_s, until_s) : Reading<unsigned>();
}

std::string_view bar_of_eighths(std::size_t value, bool ascii) {
  constexpr std::array<std::string_view, 8> kSteps{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlain = "_.,-=+*#";
  const std::size_t step = std::min<std::size_t>(value, 7);
  return ascii ? kPlain.substr(step, 1) : kSteps[step];
}

std::string trend_text(const Trend& trend, std::size_t width, bool ascii) {
  std::vector<unsigned> loads;
  for (auto point = trend.rbegin(); point != trend.rend() && loads.size() < width; ++point)
    if (point->load) loads.push_back(*point->load);
  std::string text;
  for (auto load = loads.rbegin(); load != loads.rend(); ++load)
    text += bar_of_eighths(*load * std::size_t{8} / 100, ascii);
  return text;
}

}  // namespace berth::view
