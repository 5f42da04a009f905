#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "berth/base/error.h"
#include "berth/base/record.h"

namespace berth {

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

}  // namespace berth
