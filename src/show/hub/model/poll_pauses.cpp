#include "berth/hub/model/poll_pauses.h"

#include <algorithm>
#include <cstdint>

namespace berth::hub {

std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count) {
  return every * (static_cast<std::int64_t>(index) + 1) / static_cast<std::int64_t>(count);
}

std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::seconds(30);
  constexpr unsigned kMostDoublings = 10;
  if (failures < 2) return every;
  const auto doubled = every * (1 << std::min(failures - 1, kMostDoublings));
  const auto pause = std::max(every, std::min(doubled, kLongest));
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(static_cast<double>(pause.count()) * (0.75 + 0.5 * chance)));
}

}  // namespace berth::hub
