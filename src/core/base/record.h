#pragma once

#include <algorithm>
#include <bitset>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/base/error.h"

namespace berth {

/// The text form of all our data: tickets, snapshots on the pipe, the request to a probe.
///
///     berth-ticket 1          kind and version
///     id=0000025b3c1d0e42     key=value, one a line; \n, \r and \\ in a value are escaped
///     [process]               begins a section: the keys after it belong to it
///     pid=4711
///     end                     last line: what lacks it was cut off
///
/// A reader ignores keys and sections that it does not know, so newer writers do not break it. A
/// list is the same key several times.
struct RecordLine {
  std::string_view section;  ///< "" before the first
  std::string_view key;      ///< "" for the line that begins the section
  std::string_view value;    ///< while on_line runs
};

class RecordWriter {
 public:
  RecordWriter(std::string_view kind, unsigned version);
  void field(std::string_view key, std::string_view value);
  void field(std::string_view key, std::uint64_t value);
  void section(std::string_view name);
  /// The text that was written since the last call, so that a long record can be sent while it is
  /// being made.
  std::string take();
  /// Ends the record and gives its text.
  std::string finish() &&;

 private:
  std::string text_;
};

/// Reads a decimal number. nullopt: the text is anything else, or the number is out of range.
template <class Number>
std::optional<Number> number_from_text(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Reads a whole record and calls `on_line` for each line. Gives the version. Error: `failure` if
/// the kind is another, a line is malformed or the end is missing; the message says which line.
Result<unsigned> read_record(std::string_view text, std::string_view kind,
                             const std::function<void(const RecordLine&)>& on_line);

/// A number and the unit after it: "1.5 GiB" is 1.5 and "GiB". Never negative.
struct Quantity {
  double value = 0;
  std::string_view unit;  ///< a view into the text; "" if there is none
};
/// nullopt: the text does not begin with a digit, or its unit is more than one word.
std::optional<Quantity> quantity_from_text(std::string_view text);

/// A whole number from `least` up. Error: `usage`.
template <class Number = unsigned>
Result<Number> number_at_least(std::string_view text, std::type_identity_t<Number> least) {
  const auto number = number_from_text<Number>(text);
  if (number && *number >= least) return *number;
  return fail(ErrorCode::usage, "must be a whole number, " + std::to_string(least) + " or more");
}

/// What a number without a unit is. One person means hours by "2", another minutes: theirs is
/// refused, with the likeliest meanings. Where one unit is usual, as in seconds between two looks,
/// it means that.
enum class Unitless { refused, is_base };

/// The answer to a number that could mean two things: "2 of what? write 2h or 2m". Error: `usage`.
std::unexpected<Error> of_what(std::string_view number, std::string_view either, std::string_view other);

/// "20G", "512MiB", "1.5 GB", "0": bytes. K, M, G, T alone and with iB are powers of 1024, with B
/// powers of 1000. Error: `usage`, with what is allowed.
Result<std::uint64_t> bytes_from_text(std::string_view text, Unitless unitless = Unitless::refused);

/// "30s", "10m", "4h", "2d", "1h30m", "2:30:00", "1-12:00:00", "0": seconds. Error: `usage`; also
/// for "2:30", which is hours to one reader and minutes to another.
Result<std::int64_t> seconds_from_text(std::string_view text, Unitless unitless = Unitless::refused);

/// "11.2 GiB", "512 MiB": for people.
std::string bytes_for_people(std::uint64_t bytes);

/// "20G", "512M", "1000B": as bytes_from_text reads it, in the largest unit that says it exactly.
std::string bytes_as_typed(std::uint64_t bytes);

/// Two amounts for people, exact enough that different amounts read differently: 20 GiB less one
/// byte is not shown as "20 GiB" beside 20 GiB.
std::pair<std::string, std::string> bytes_side_by_side(std::uint64_t a, std::uint64_t b);

/// "45s", "90m", "2h", "7d": as seconds_from_text reads it, in the largest unit that says it
/// exactly.
std::string time_for_people(std::int64_t seconds);

/// "12 s", "5 min", "2 h", "3 d": for people. Whole units, rounded down.
std::string duration_for_people(std::int64_t seconds);
/// The same; "250 ms" below a second.
std::string duration_for_people(std::chrono::milliseconds time);

/// The longest time after which something happens: ten years. Clocks count nanoseconds, and three
/// hundred years of these are too many for 64 bits.
inline constexpr std::int64_t kLongestDelayS = 10LL * 365 * 24 * 3600;

/// As seconds_from_text, for such a time. A longer one is cut.
Result<std::int64_t> delay_from_text(std::string_view text, Unitless unitless = Unitless::refused);

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

/// Of std::chrono::steady_clock, which nobody can set: since it began, or between two such times.
using SteadyTime = std::chrono::nanoseconds;

/// The earlier of two moments at which something is due. nullopt: never.
template <class Time>
constexpr std::optional<Time> earlier(const std::optional<Time>& a,
                                      const std::type_identity_t<std::optional<Time>>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace berth
