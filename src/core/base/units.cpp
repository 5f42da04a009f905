#include "berth/base/record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include "berth/base/text.h"

namespace berth {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr double kKi = 1024.0;
constexpr double kMi = kKi * kKi;
constexpr double kGi = kMi * kKi;
constexpr double kTi = kGi * kKi;

constexpr std::array kByteUnits{
    Unit{"", 1},      Unit{"B", 1},    Unit{"K", kKi},   Unit{"Ki", kKi}, Unit{"KiB", kKi}, Unit{"KB", 1e3},
    Unit{"M", kMi},   Unit{"Mi", kMi}, Unit{"MiB", kMi}, Unit{"MB", 1e6}, Unit{"G", kGi},   Unit{"Gi", kGi},
    Unit{"GiB", kGi}, Unit{"GB", 1e9}, Unit{"T", kTi},   Unit{"Ti", kTi}, Unit{"TiB", kTi}, Unit{"TB", 1e12}};

constexpr std::array kTimeUnits{
    Unit{"", 1},         Unit{"s", 1},     Unit{"sec", 1},     Unit{"secs", 1},    Unit{"second", 1},
    Unit{"seconds", 1},  Unit{"m", 60},    Unit{"min", 60},    Unit{"mins", 60},   Unit{"minute", 60},
    Unit{"minutes", 60}, Unit{"h", 3600},  Unit{"hr", 3600},   Unit{"hrs", 3600},  Unit{"hour", 3600},
    Unit{"hours", 3600}, Unit{"d", 86400}, Unit{"day", 86400}, Unit{"days", 86400}};

/// std::round is a function of libm, the only one that Berth would need: a library less is 0.06 ms
/// less in each start of a program. REQUIRES: 0 <= amount < 2^63.
std::uint64_t rounded(double amount) {
  const auto whole = static_cast<std::uint64_t>(amount);
  return whole + (amount - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

/// The whole number of base units that `text` stands for. nullopt: no number, no such unit, or too
/// large.
template <std::size_t N>
std::optional<std::uint64_t> scaled(std::string_view text, const std::array<Unit, N>& units,
                                    Unitless unitless) {
  const std::optional<Quantity> quantity = quantity_from_text(text);
  if (!quantity) return std::nullopt;
  if (quantity->unit.empty() && unitless == Unitless::refused && quantity->value > 0) return std::nullopt;
  for (const Unit& unit : units) {
    if (!same_text(unit.name, quantity->unit)) continue;
    const double amount = quantity->value * unit.scale;
    // The largest double that both std::int64_t and std::uint64_t can take.
    constexpr double kLimit = 9223372036854774784.0;
    if (amount > kLimit) return std::nullopt;
    return rounded(amount);
  }
  return std::nullopt;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Where the first of "1h30m" or "1 h 30 min" ends: before the number that follows its unit.
std::size_t end_of_first_part(std::string_view text) {
  bool has_unit = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    has_unit = has_unit || is_letter(text[i]);
    if (has_unit && is_digit(text[i])) return i;
  }
  return text.size();
}

using LikelyUnits = std::pair<std::string_view, std::string_view>;

std::unexpected<Error> unit_is_missing(std::string_view number, LikelyUnits units) {
  return of_what(number, fmt::format("{}{}", number, units.first), fmt::format("{}{}", number, units.second));
}

LikelyUnits size_units_for(double number) {
  if (number >= kMi) return {"B", "K"};
  return number >= kKi ? LikelyUnits{"M", "K"} : LikelyUnits{"G", "M"};
}

LikelyUnits time_units_for(double number) {
  constexpr double kHoursOfDay = 24;
  return number > kHoursOfDay ? LikelyUnits{"s", "m"} : LikelyUnits{"h", "m"};
}

constexpr std::uint64_t kMostSeconds = std::numeric_limits<std::int64_t>::max();

std::unexpected<Error> no_time(std::string_view text) {
  return fail(ErrorCode::usage,
              "\"{}\" is not a time: expected a number and s, m, h or d, like "
              "30s, 4h or 1h30m, or hours:minutes:seconds, like 4:00:00",
              printable(text));
}

/// A number of a clock's time. nullopt: it has other characters, fewer digits than `least`, or more
/// than `most`.
std::optional<std::int64_t> clock_number(std::string_view text, std::size_t least, std::size_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && text.front() != '-';
  return is_whole && text.size() >= least && text.size() <= most ? std::optional(number) : std::nullopt;
}

/// "H:MM:SS" or "D-HH:MM:SS".
Result<std::int64_t> seconds_of_clock(std::string_view text) {
  constexpr std::size_t kMostDigits = 6;
  constexpr std::int64_t kDayHours = 24;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const std::string_view clock = has_days ? text.substr(dash + 1) : text;
  const auto days = has_days ? clock_number(text.substr(0, dash), 1, kMostDigits) : 0;
  const std::size_t first = std::min(clock.find(':'), clock.size());
  const std::size_t last = clock.rfind(':');
  const auto hours = clock_number(clock.substr(0, first), has_days ? 2 : 1, has_days ? 2 : kMostDigits);
  const auto seconds =
      last == std::string_view::npos ? std::nullopt : clock_number(clock.substr(last + 1), 2, 2);
  if (!days || !hours || !seconds || *seconds > 59 || (has_days && *hours >= kDayHours)) return no_time(text);
  if (first == last && !has_days)
    return of_what(fmt::format("{}:{:02}", *hours, *seconds), fmt::format("{}h{}m", *hours, *seconds),
                   fmt::format("{}m{}s", *hours, *seconds));
  const auto minutes =
      first == last ? std::nullopt : clock_number(clock.substr(first + 1, last - first - 1), 2, 2);
  if (!minutes || *minutes > 59) return no_time(text);
  return ((*days * kDayHours + *hours) * 60 + *minutes) * 60 + *seconds;
}

}  // namespace

std::unexpected<Error> of_what(std::string_view number, std::string_view either, std::string_view other) {
  return fail(ErrorCode::usage, "{} of what? write {} or {}", printable(number), printable(either),
              printable(other));
}

std::optional<Quantity> quantity_from_text(std::string_view text) {
  text = trimmed(text);
  // from_chars alone would also take "inf" and "-1".
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  Quantity quantity;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), quantity.value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  quantity.unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (quantity.unit.find_first_of(" \t") != std::string_view::npos) return std::nullopt;
  return quantity;
}

Result<std::uint64_t> bytes_from_text(std::string_view text, Unitless unitless) {
  if (const auto bytes = scaled(text, kByteUnits, unitless)) return *bytes;
  if (const auto quantity = quantity_from_text(text); quantity && quantity->unit.empty())
    return unit_is_missing(trimmed(text), size_units_for(quantity->value));
  return fail(ErrorCode::usage,
              "\"{}\" is not an amount of memory: expected a number and K, M, G or T (powers of 1024) "
              "or KB, MB, GB or TB (powers of 1000), like 20G",
              printable(text));
}

Result<std::int64_t> seconds_from_text(std::string_view text, Unitless unitless) {
  if (text.find(':') != std::string_view::npos) return seconds_of_clock(trimmed(text));
  std::uint64_t sum = 0;
  std::string_view rest = text;
  do {
    const std::string_view part = rest.substr(0, end_of_first_part(rest));
    rest.remove_prefix(part.size());
    // Of "1h30" nobody knows what the 30 are.
    const bool is_all = part.size() == text.size();
    const auto seconds = scaled(part, kTimeUnits, unitless);
    if (const auto quantity = quantity_from_text(part);
        is_all && !seconds && quantity && quantity->unit.empty())
      return unit_is_missing(trimmed(text), time_units_for(quantity->value));
    const bool has_unit = is_all || is_letter(trimmed(part).back());
    if (!seconds || !has_unit || *seconds > kMostSeconds - sum) return no_time(text);
    sum += *seconds;
  } while (!rest.empty());
  return static_cast<std::int64_t>(sum);
}

std::string bytes_for_people(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  // Not 1024: 1023.96 MiB would be shown as "1024 MiB".
  while (amount >= 1023.5 && unit + 1 < kNames.size()) {
    amount /= kKi;
    ++unit;
  }
  const std::uint64_t tenths = rounded(amount * 10);
  const bool whole = amount >= 100 || tenths % 10 == 0;
  if (whole) return fmt::format("{:.0f} {}", amount, kNames[unit]);
  return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kNames[unit]);
}

std::pair<std::string, std::string> bytes_side_by_side(std::uint64_t a, std::uint64_t b) {
  std::pair<std::string, std::string> texts{bytes_for_people(a), bytes_for_people(b)};
  if (a == b || texts.first != texts.second) return texts;
  constexpr std::uint64_t kMib = 1ULL << 20;
  if (a / kMib != b / kMib) {
    return {fmt::format("{} MiB", a / kMib), fmt::format("{} MiB", b / kMib)};
  }
  return {fmt::format("{} B", a), fmt::format("{} B", b)};
}

std::string bytes_as_typed(std::uint64_t bytes) {
  constexpr std::uint64_t kStep = 1024;
  constexpr std::string_view kSigns = "BKMGT";
  std::size_t sign = 0;
  while (bytes != 0 && bytes % kStep == 0 && sign + 1 < kSigns.size()) {
    bytes /= kStep;
    ++sign;
  }
  return fmt::format("{}{}", bytes, kSigns[sign]);
}

std::string time_for_people(std::int64_t seconds) {
  if (seconds > 0 && seconds % (24 * 60 * 60) == 0) return fmt::format("{}d", seconds / (24 * 60 * 60));
  if (seconds > 0 && seconds % (60 * 60) == 0) return fmt::format("{}h", seconds / (60 * 60));
  if (seconds > 0 && seconds % 60 == 0) return fmt::format("{}m", seconds / 60);
  return fmt::format("{}s", seconds);
}

std::string duration_for_people(std::int64_t seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 60 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 60 * 60) return fmt::format("{} h", seconds / (60 * 60));
  return fmt::format("{} d", seconds / (24 * 60 * 60));
}

std::string duration_for_people(std::chrono::milliseconds time) {
  if (std::chrono::abs(time) < std::chrono::seconds(1)) return fmt::format("{} ms", time.count());
  return duration_for_people(std::chrono::floor<std::chrono::seconds>(time).count());
}

Result<std::int64_t> delay_from_text(std::string_view text, Unitless unitless) {
  BERTH_LET(const auto seconds, seconds_from_text(text, unitless));
  return std::min(seconds, kLongestDelayS);
}

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
