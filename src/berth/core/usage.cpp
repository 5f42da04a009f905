#include "berth/core/usage.h"

#include <array>

namespace berth {

bool read_value(std::string_view text, UsageBy& by) {
  by = text == to_text(UsageBy::device) ? UsageBy::device : UsageBy::user;
  return text == to_text(by);
}

std::string_view to_text(UsageBy by) {
  constexpr std::array<std::string_view, 2> kTexts{"user", "device"};
  return kTexts[static_cast<std::size_t>(by)];
}

}  // namespace berth
