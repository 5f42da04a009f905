#pragma once

#include <cstdint>
#include <string_view>

#include "berth/base/error.h"
#include "berth/base/units.h"

namespace berth {

/// The longest time after which something happens: ten years. Clocks count nanoseconds, and three
/// hundred years of these are too many for 64 bits.
inline constexpr std::int64_t kLongestDelayS = 10LL * 365 * 24 * 3600;

/// As seconds_from_text, for such a time. A longer one is cut.
Result<std::int64_t> delay_from_text(std::string_view text, Unitless unitless = Unitless::refused);

}  // namespace berth
