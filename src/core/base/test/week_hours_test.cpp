#include "berth/base/record.h"

#include <doctest/doctest.h>

namespace berth::week_hours_test {
namespace {

WeekMinute at(unsigned day, unsigned hour, unsigned minute = 0) {
  return {day, hour * 60 + minute};
}

constexpr unsigned kMonday = 0;
constexpr unsigned kTuesday = 1;
constexpr unsigned kFriday = 4;
constexpr unsigned kSaturday = 5;
constexpr unsigned kSunday = 6;

TEST_CASE("hours of some days begin with the first minute and end before the last") {
  const WeekHours hours = *week_hours_from_text("Mon-Fri 08:00-18:00");
  CHECK(hours.text == "Mon-Fri 08:00-18:00");
  CHECK(hours.include(at(kMonday, 8)));
  CHECK(hours.include(at(kFriday, 17, 59)));
  CHECK_FALSE(hours.include(at(kMonday, 7, 59)));
  CHECK_FALSE(hours.include(at(kMonday, 18)));
  CHECK_FALSE(hours.include(at(kSaturday, 12)));
}

TEST_CASE("days without hours are whole, and hours without days are of every day") {
  const WeekHours weekend = *week_hours_from_text(" sat,SUN ");
  CHECK(weekend.include(at(kSaturday, 0)));
  CHECK(weekend.include(at(kSunday, 23, 59)));
  CHECK_FALSE(weekend.include(at(kMonday, 0)));
  CHECK(week_hours_from_text("08:00-24:00")->include(at(kSunday, 23, 59)));
  CHECK_FALSE(week_hours_from_text("08:00-24:00")->include(at(kSunday, 7, 59)));
}

TEST_CASE("days may go over the end of the week, and hours over midnight") {
  const WeekHours days = *week_hours_from_text("Sat-Mon");
  CHECK(days.include(at(kSunday, 12)));
  CHECK(days.include(at(kMonday, 12)));
  CHECK_FALSE(days.include(at(kTuesday, 12)));
  const WeekHours night = *week_hours_from_text("Sun 22:00-06:00");
  CHECK(night.include(at(kSunday, 22)));
  CHECK(night.include(at(kMonday, 5, 59)));
  CHECK_FALSE(night.include(at(kMonday, 6)));
  CHECK_FALSE(night.include(at(kSunday, 5)));
  CHECK_FALSE(night.include(at(kMonday, 23)));
}

TEST_CASE("what names no hours is refused with examples") {
  for (const char* text : {"", "  ", "Mon-", "Monday", "Mon,", "8-18", "Mon 8:00-18:00", "08:00-08:00",
                           "24:00-08:00", "08:00-00:00", "08:00-24:01", "08:60-09:00", "Mon Tue",
                           "Mon 08:00-18:00 x", "08:00-18:00 Mon", "08:00", "Mon-Fri-Sat"}) {
    CAPTURE(text);
    const auto hours = week_hours_from_text(text);
    REQUIRE_FALSE(hours);
    CHECK(hours.error().code == ErrorCode::usage);
  }
  CHECK(week_hours_from_text("soon").error().message ==
        "'soon' names no hours of the week: write \"Mon-Fri 08:00-18:00\", \"Sat,Sun\" or \"22:00-06:00\"");
}

}  // namespace
}  // namespace berth::week_hours_test
