#include "berth/job/position_text.h"

#include <fmt/format.h>

namespace berth {

std::string position_of(std::uint64_t number, std::string_view moved_to) {
  return moved_to.empty() ? fmt::format("{:020}", number) : std::string(moved_to);
}

// As fractions of which these are the digits. There is always room for one more.
std::string position_between(std::string_view before, std::string_view next) {
  std::string position;
  for (std::size_t at = 0;; ++at) {
    const int low = at < before.size() ? before[at] - '0' : 0;
    const bool is_bounded = !next.empty() && position == next.substr(0, at);
    const int high = !is_bounded ? 10 : at < next.size() ? next[at] - '0' : 0;
    if (high - low > 1) return position + static_cast<char>('0' + (low + high) / 2);
    position += static_cast<char>('0' + low);
    // It is below the next one now, and only has to be behind the other.
  }
}

}  // namespace berth
