#include "berth/usage/usage.h"

#include <array>

namespace berth {

bool read_value(std::string_view text, UsageBy& by) {
  for (const UsageBy each : {UsageBy::user, UsageBy::device, UsageBy::job}) {
    if (text != to_text(each)) continue;
    by = each;
    return true;
  }
  return false;
}

std::string_view to_text(UsageBy by) {
  constexpr std::array<std::string_view, 3> kTexts{"user", "device", "job"};
  return kTexts[static_cast<std::size_t>(by)];
}

}  // namespace berth
