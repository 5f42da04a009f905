#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/queue/standing.h"
#include "berth/view/answers_json.h"
#include "berth/view/listing.h"

namespace berth::view {

/// The values of the counters since the agent began.
struct LeaseCounts {
  static constexpr std::array<double, 9> kWaitBounds{0.1, 1, 10, 60, 600, 3600, 14'400, 86'400, 604'800};

  std::uint64_t granted = 0;
  std::uint64_t ended = 0;
  std::array<std::uint64_t, kWaitBounds.size()> waited_at_most{};  ///< cumulative, as in a histogram
  double waited_s = 0;

  bool operator==(const LeaseCounts&) const = default;
};

/// Prometheus' text format. A value that is not known has no series. Foreign text is escaped.
struct Metrics {
  const Listing* listing = nullptr;  ///< null: the look at the machine failed
  const std::vector<Standing>& waiters;
  const LeaseCounts& counts;
  std::string_view version;
  std::int64_t now_s = 0;
  HistoryHealth history{};
};
std::string prometheus_text(const Metrics& metrics);

}  // namespace berth::view
