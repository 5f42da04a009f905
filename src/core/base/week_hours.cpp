#include "berth/base/week_hours.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "berth/base/fail.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

constexpr unsigned kDayMinutes = 24 * 60;
constexpr std::array<std::string_view, 7> kDays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::optional<unsigned> day_from_text(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
  });
  const auto found = std::ranges::find(kDays, lower);
  if (found == kDays.end()) return std::nullopt;
  return static_cast<unsigned>(found - kDays.begin());
}

// Both are there and nothing more.
std::optional<std::array<std::string_view, 2>> around(std::string_view text, char mark) {
  const std::size_t place = text.find(mark);
  if (place == std::string_view::npos) return std::nullopt;
  return std::array{text.substr(0, place), text.substr(place + 1)};
}

std::optional<unsigned> number_of_two(std::string_view text, unsigned most) {
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || text.size() != 2 || number > most)
    return std::nullopt;
  return number;
}

std::optional<unsigned> minute_from_text(std::string_view text) {
  const auto parts = around(text, ':');
  if (!parts) return std::nullopt;
  const auto hour = number_of_two((*parts)[0], 24);
  const auto minute = number_of_two((*parts)[1], 59);
  if (!hour || !minute || *hour * 60 + *minute > kDayMinutes) return std::nullopt;
  return *hour * 60 + *minute;
}

bool read_hours(std::string_view text, WeekHours& hours) {
  const auto parts = around(text, '-');
  if (!parts) return false;
  const auto from = minute_from_text((*parts)[0]);
  const auto until = minute_from_text((*parts)[1]);
  if (!from || !until || *from == kDayMinutes || *until == 0 || *from == *until) return false;
  hours.from = *from;
  hours.until = *until;
  return true;
}

// "Mon-Fri" or "Sat": "Sat-Mon" goes over the end of the week.
bool read_days(std::string_view text, WeekHours& hours) {
  const auto parts = around(text, '-');
  const auto first = day_from_text(parts ? (*parts)[0] : text);
  const auto last = parts ? day_from_text((*parts)[1]) : first;
  if (!first || !last) return false;
  for (unsigned day = *first;; day = (day + 1) % kDays.size()) {
    hours.days.set(day);
    if (day == *last) return true;
  }
}

bool read_list_of_days(std::string_view text, WeekHours& hours) {
  for (;;) {
    const auto parts = around(text, ',');
    if (!read_days(parts ? (*parts)[0] : text, hours)) return false;
    if (!parts) return true;
    text = (*parts)[1];
  }
}

bool read_words(const std::vector<std::string_view>& words, WeekHours& hours) {
  if (words.empty() || words.size() > 2) return false;
  const bool tells_hours = words.back().find(':') != std::string_view::npos;
  if (tells_hours && !read_hours(words.back(), hours)) return false;
  if (words.size() == 1 && tells_hours) {
    hours.days.set();
    return true;
  }
  return tells_hours == (words.size() == 2) && read_list_of_days(words.front(), hours);
}

}  // namespace

bool WeekHours::include(WeekMinute moment) const {
  const auto begins_on = [&](unsigned day) { return days.test(day); };
  if (from < until) return begins_on(moment.day) && moment.minute >= from && moment.minute < until;
  if (moment.minute >= from) return begins_on(moment.day);
  return moment.minute < until && begins_on((moment.day + 6) % 7);
}

Result<WeekHours> week_hours_from_text(std::string_view text) {
  WeekHours hours;
  hours.text = text;
  if (read_words(words_at(text), hours)) return hours;
  return fail(ErrorCode::usage,
              "'{}' names no hours of the week: write \"Mon-Fri 08:00-18:00\", \"Sat,Sun\" or "
              "\"22:00-06:00\"",
              text);
}

}  // namespace berth
