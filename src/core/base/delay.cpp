#include "berth/base/delay.h"

#include <algorithm>

namespace berth {

Result<std::int64_t> delay_from_text(std::string_view text, Unitless unitless) {
  BERTH_LET(const auto seconds, seconds_from_text(text, unitless));
  return std::min(seconds, kLongestDelayS);
}

}  // namespace berth
