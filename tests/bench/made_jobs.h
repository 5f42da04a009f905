#pragma once

// Jobs that are made up, the same on every machine: of published run times, and of a mix of sizes.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/simulate/replay.h"

namespace bench {

using berth::Moment;

inline constexpr std::size_t kDevices = 8;
inline constexpr Moment kDay = 86'400;
inline constexpr Moment kLongest = 3 * kDay;
inline constexpr std::array kSizes{1U, 2U, 4U, 8U};

struct Mix {
  std::string_view name;
  std::array<double, kSizes.size()> shares;  ///< of the jobs, that want so many
};
inline constexpr std::array kMixes{Mix{"with8", {.70, .12, .10, .08}}, Mix{"without8", {.80, .12, .08, 0}}};

/// The same numbers everywhere, which the library's distributions do not promise.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  /// From 0 up to 1, without it.
  double share() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  /// Of the normal distribution (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - share()));
    return radius * std::cos(2 * 3.14159265358979323846 * share());
  }

 private:
  std::mt19937_64 engine_;
};

inline std::vector<double> read_quantiles(const char* path) {
  std::ifstream file(path);
  std::vector<double> quantiles;
  for (std::string line; std::getline(file, line);) {
    const std::size_t comma = line.find(',');
    if (line.starts_with("0.") || line.starts_with("1."))
      quantiles.push_back(std::stod(line.substr(comma + 1)));
  }
  return quantiles;
}

/// Of a run time at this share of all, in seconds.
inline double run_time(std::span<const double> quantiles, double share) {
  const double at = share * static_cast<double>(quantiles.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double between = at - static_cast<double>(below);
  const double seconds = quantiles[below] + (quantiles[below + 1] - quantiles[below]) * between;
  return std::min(seconds, static_cast<double>(kLongest));
}

inline unsigned size_at(const Mix& mix, double share) {
  for (std::size_t at = 0; at < kSizes.size(); ++at) {
    if (share < mix.shares[at]) return kSizes[at];
    share -= mix.shares[at];
  }
  return kSizes[0];
}

/// What a job says of its time, by its run time and by a share that is its own.
using Said = std::optional<Moment>;
using Says = Said (*)(Moment duration, double share);
inline Said nothing(Moment /*duration*/, double /*share*/) {
  return std::nullopt;
}
inline Said thrice(Moment duration, double /*share*/) {
  return 3 * duration;
}
inline Said half_thrice(Moment duration, double share) {
  return share < 0.5 ? Said(3 * duration) : std::nullopt;
}
inline Said truth(Moment duration, double /*share*/) {
  return duration;
}

template <class Rows>
const auto* named(const Rows& rows, std::string_view name) {
  const auto found = std::ranges::find_if(rows, [&](const auto& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace bench
