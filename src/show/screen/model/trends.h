#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/device/device.h"
#include "berth/machines/host.h"

// What devices did over the time in which somebody has looked at them.
namespace berth::view {

/// What a look saw, or the mean of several, in percent.
struct TrendPoint {
  std::int64_t from_s = 0;
  std::int64_t until_s = 0;
  Reading<unsigned> load{};
  Reading<unsigned> memory{};

  bool operator==(const TrendPoint&) const = default;
};

/// The oldest first, none at the same time as another.
using Trend = std::vector<TrendPoint>;
/// By host and UUID.
using Trends = std::map<std::pair<std::string, std::string>, Trend>;

/// Looks that are kept each; of what is older, a minute is one point.
inline constexpr std::size_t kTrendLooks = 300;
/// Points that are kept in all: more than six hours.
inline constexpr std::size_t kTrendPoints = 720;

/// Adds what the hosts that answer show now. It counts until the next look, which comes in
/// `every_s`.
void remember(Trends& trends, const Hosts& hosts, std::int64_t now_s, std::int64_t every_s);

/// The mean of this time. nullopt: nobody looked then, or the device did not tell.
Reading<unsigned> mean_in(const Trend& trend, Reading<unsigned> TrendPoint::* value, std::int64_t from_s,
                          std::int64_t until_s);

/// The share of its memory that is in use, from 0 to 1; -1: not known.
double memory_share(const Device& device);

/// A value from 0 to 7 as a bar of that height.
std::string_view bar_of_eighths(std::size_t value, bool ascii);

/// The last loads as a line of bars, at most `width`.
std::string trend_text(const Trend& trend, std::size_t width, bool ascii);

}  // namespace berth::view
