#pragma once

#include <bitset>
#include <string>
#include <string_view>

#include "berth/base/error.h"

namespace berth {

/// A minute of the week, by the wall clock in the time zone of the machine.
struct WeekMinute {
  unsigned day = 0;     ///< 0: Monday
  unsigned minute = 0;  ///< of the day, below 1,440

  bool operator==(const WeekMinute&) const = default;
};

/// The same hours on some days of the week. Hours that pass midnight belong to the day on which
/// they begin.
struct WeekHours {
  std::bitset<7> days;       ///< 0: Monday
  unsigned from = 0;         ///< minute of the day
  unsigned until = 24 * 60;  ///< minute of that day, or of the next one if it is not after `from`
  std::string text{};        ///< as it was written

  bool include(WeekMinute moment) const;
  bool operator==(const WeekHours&) const = default;
};

/// "Mon-Fri 08:00-18:00", "Sat,Sun", "22:00-06:00". Without days: every day. Without hours: the
/// whole day.
Result<WeekHours> week_hours_from_text(std::string_view text);

}  // namespace berth
