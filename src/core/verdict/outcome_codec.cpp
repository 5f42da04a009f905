#include "berth/verdict/outcome_codec.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <ranges>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

constexpr std::string_view kHead = "berth-outcomes 1 ";
constexpr std::size_t kFields = 5;
constexpr std::size_t kMostDigits = 16;
// As many as the longest passing comes from, and two more.
constexpr std::size_t kKeptOfDevice = 12;
constexpr std::size_t kKeptBytes = kMostOutcomeBytes / 2;

std::optional<std::uint64_t> fingerprint_from(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != kMostDigits)
    return std::nullopt;
  return number;
}

// Each request reads all lines of its user: nothing is allocated here.
std::optional<std::array<std::string_view, kFields>> fields_of(std::string_view line) {
  std::array<std::string_view, kFields> fields;
  for (std::size_t i = 0; i + 1 < kFields; ++i) {
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = line.substr(0, end);
    line.remove_prefix(end + 1);
  }
  fields.back() = line;
  return fields;
}

/// Whether the word stands where this letter of it does: one that is rare in the text, and quickly
/// found.
bool stands_at(std::string_view text, std::size_t letter_at, std::string_view word, char letter) {
  const std::size_t before = word.find(letter);
  return letter_at >= before && text.substr(letter_at - before).starts_with(word);
}

std::optional<PastRun> decode_line(std::string_view line) {
  const auto found = fields_of(line);
  if (!found || !found->back().ends_with(';')) return std::nullopt;
  const auto& fields = *found;
  const auto fingerprint = fingerprint_from(fields[0]);
  const auto begun = number_from_text<Moment>(fields[1]);
  const auto lasted = number_from_text<Moment>(fields[2]);
  Ending ending{};
  if (!fingerprint || !begun || !lasted || !read_value(fields[3], ending)) return std::nullopt;
  PastRun outcome{*fingerprint, *begun, *lasted, ending, {}};
  for (const std::string_view uuid : parts_at(fields[4].substr(0, fields[4].size() - 1), ',')) {
    if (uuid.empty()) return std::nullopt;
    outcome.devices.emplace_back(uuid);
  }
  return outcome;
}

}  // namespace

std::string encode_outcome(const PastRun& outcome) {
  return fmt::format("{:016x} {} {} {} {};\n", outcome.fingerprint, outcome.begun, outcome.lasted,
                     to_text(outcome.ending), fmt::join(outcome.devices, ","));
}

bool is_of_boot(std::string_view text, std::string_view boot) {
  const std::size_t head = text.find('\n');
  return head != std::string_view::npos && text.substr(0, head) == fmt::format("{}{}", kHead, boot);
}

std::vector<PastRun> decode_outcomes(std::string_view text, std::string_view boot) {
  std::vector<PastRun> outcomes;
  if (!is_of_boot(text, boot)) return outcomes;
  text = text.substr(text.find('\n') + 1, kMostOutcomeBytes);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    if (auto outcome = decode_line(text.substr(0, end))) outcomes.push_back(*std::move(outcome));
    text.remove_prefix(end + 1);
  }
  return outcomes;
}

std::string encode_outcomes(const std::vector<PastRun>& outcomes, std::string_view boot) {
  std::vector<std::string> lines;
  std::map<std::string_view, std::size_t> of_device;
  std::size_t bytes = 0;
  for (const PastRun& outcome : std::views::reverse(outcomes)) {
    const bool is_wanted = std::ranges::any_of(
        outcome.devices, [&](const std::string& uuid) { return of_device[uuid] < kKeptOfDevice; });
    if (!is_wanted) continue;
    for (const std::string& uuid : outcome.devices) ++of_device[uuid];
    lines.push_back(encode_outcome(outcome));
    bytes += lines.back().size();
    if (bytes <= kKeptBytes) continue;
    lines.pop_back();
    break;
  }
  std::string text = fmt::format("{}{}\n", kHead, boot);
  for (const std::string& line : std::views::reverse(lines)) text += line;
  return text;
}

bool may_blame(std::string_view text, std::size_t bad_runs) {
  for (std::size_t at = text.find('n'); at != std::string_view::npos; at = text.find('n', at + 1)) {
    if (stands_at(text, at, " included ", 'n') || stands_at(text, at, " no_cuda ", 'n')) return true;
  }
  std::size_t bad = 0;
  for (std::size_t at = text.find('y'); at != std::string_view::npos; at = text.find('y', at + 1))
    bad += stands_at(text, at, " badly ", 'y') ? 1 : 0;
  return bad >= bad_runs;
}

}  // namespace berth
