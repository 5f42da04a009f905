#include "berth/slurm/slurm_values.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kMostUnits = 1'000'000;

std::optional<std::int64_t> small_number(std::string_view text) {
  const auto number = number_from_text<std::int64_t>(text);
  return number && *number >= 0 && *number <= kMostUnits ? number : std::nullopt;
}

struct SpanUnit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr auto kSpanUnits = std::to_array<SpanUnit>({{"", 1},
                                                     {"second", 1},
                                                     {"seconds", 1},
                                                     {"minute", kMinute},
                                                     {"minutes", kMinute},
                                                     {"hour", kHour},
                                                     {"hours", kHour},
                                                     {"day", kDay},
                                                     {"days", kDay},
                                                     {"week", 7 * kDay},
                                                     {"weeks", 7 * kDay}});

std::optional<std::string> replacement(char letter, TaskId id, std::string_view job_name,
                                       std::string_view user) {
  switch (letter) {
    case 'j':
      return id.index ? fmt::format("{}_{}", id.job, *id.index) : std::to_string(id.job);
    case 'A':
      return std::to_string(id.job);
    case 'a':
      return std::to_string(id.index.value_or(0));
    case 'x':
      return std::string(job_name);
    case 'u':
      return std::string(user);
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::int64_t> seconds_from_slurm(std::string_view text) {
  if (text == "UNLIMITED" || text == "INFINITE") return 0;
  const auto wrong =
      fail(ErrorCode::usage,
           "must be minutes, minutes:seconds, hours:minutes:seconds or days-hours:minutes:seconds");
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::int64_t sum = 0;
  if (has_days) {
    const auto days = small_number(text.substr(0, dash));
    if (!days) return wrong;
    sum = *days * kDay;
    text.remove_prefix(dash + 1);
  }
  const auto parts = parts_at(text, ':');
  if (parts.size() > 3) return wrong;
  // Two parts without days are minutes and seconds, one part minutes; with days it begins with
  // hours.
  std::int64_t unit = has_days || parts.size() == 3 ? kHour : kMinute;
  for (const std::string_view part : parts) {
    const auto number = small_number(part);
    if (!number) return wrong;
    sum += *number * unit;
    unit /= 60;
  }
  return sum;
}

std::optional<std::int64_t> span_from_slurm(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = small_number(text.substr(0, digits));
  const auto* const unit = std::ranges::find(kSpanUnits, text.substr(digits), &SpanUnit::name);
  return count && unit != kSpanUnits.end() ? std::optional(*count * unit->seconds) : std::nullopt;
}

Result<void> check_slurm_pattern(std::string_view pattern) {
  for (std::size_t at = pattern.find('%'); at != std::string_view::npos; at = pattern.find('%', at + 2)) {
    const char letter = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (!replacement(letter, {}, "", ""))
      return fail(ErrorCode::usage, "Berth knows %j, %A, %a, %x, %u and %% in the name of a file");
  }
  return {};
}

std::string filled_slurm_pattern(std::string_view pattern, TaskId id, std::string_view job_name,
                                 std::string_view user) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '%' && at + 1 < pattern.size())
      text += replacement(pattern[++at], id, job_name, user).value_or("");
    else
      text += pattern[at];
  }
  return text;
}

SlurmExport export_from_slurm(std::string_view text) {
  SlurmExport wish{.all = false, .names = {}, .values = {}};
  for (const std::string_view part : parts_at(text, ',')) {
    if (part == "ALL")
      wish.all = true;
    else if (part.find('=') != std::string_view::npos)
      wish.values.emplace_back(part);
    else if (!part.empty() && part != "NONE")
      wish.names.emplace_back(part);
  }
  return wish;
}

}  // namespace berth
