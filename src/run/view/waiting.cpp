#include "berth/view/waiting.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/printable.h"
#include "berth/base/units.h"
#include "berth/queue/expected_run_time.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

/// Never going to be given to this request, so that nobody waits for it.
bool is_out_of_question(const Verdict& verdict) {
  return verdict.failed && *verdict.failed <= Clause::static_filters && *verdict.failed != Clause::healthy;
}

/// `promise_bytes`: of a share, the memory that it wants on each device; 0: none is promised.
std::string what_is_missing(const std::vector<Verdict>& verdicts, std::uint64_t promise_bytes,
                            const Snapshot& snapshot, const Style& style) {
  const auto devices = devices_of(verdicts, snapshot);
  std::size_t free = 0;
  std::size_t possible = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // what is said, and of which
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    if (devices[i] == nullptr || is_out_of_question(verdict)) continue;
    ++possible;
    if (verdict.free()) {
      ++free;
    } else {
      const std::string state = short_state(verdict, *devices[i], style).text;
      auto said = std::ranges::find(alike, state, [](const auto& each) { return each.first; });
      if (said == alike.end()) said = alike.insert(said, {state, {}});
      said->second.push_back(label(*devices[i]));
    }
  }
  std::string busy;
  for (const auto& [state, labels] : alike)
    busy += fmt::format("{}GPU {} {}", busy.empty() ? "" : ", ", label_list(labels), state);
  const std::string wanted =
      promise_bytes == 0 ? "" : fmt::format(" for {}", bytes_for_people(promise_bytes));
  return fmt::format("{} of {} free{}{}{}", free, possible, wanted, busy.empty() ? "" : "; ", busy);
}

std::string_view source(const Ticket& ticket) {
  switch (expected_by(ticket)) {
    case ExpectedBy::limit:
      return "its time limit";
    case ExpectedBy::runs:
      return "earlier runs";
    case ExpectedBy::nothing:
      break;
  }
  return "nothing is known of it";
}

std::string why_not_yet(const Standing& standing, const Snapshot& snapshot, const Style& style) {
  if (standing.stopped) return "stopped: the others skip it until it goes on";
  if (!standing.hindrance.empty())
    return fmt::format("it keeps its place until its GPUs can be used again: {}", standing.hindrance);
  const std::string missing =
      standing.verdicts.empty()
          ? std::string()
          : what_is_missing(standing.verdicts, standing.ticket.promise_bytes, snapshot, style);
  const auto with_missing = [&](std::string_view why) {
    return missing.empty() ? std::string(why) : fmt::format("{}; {}", missing, why);
  };
  if (standing.ticket.held_back) {
    if (!standing.limited.empty())
      return fmt::format("{}; later requests may start before it", printable(standing.limited));
    return with_missing("its own conditions are not met, so later requests may start before it");
  }
  if (standing.fills_gap_until_s)
    return fmt::format("fills a gap until {} on GPU {}", clock_time(*standing.fills_gap_until_s, style),
                       device_labels(standing.fills_gap_on, snapshot));
  if (standing.behind) {
    const std::string command = short_command(standing.behind->command);
    return fmt::format("behind {}{}", printable(standing.behind->user),
                       command.empty() ? std::string() : fmt::format(" ({})", command));
  }
  const auto free = static_cast<std::size_t>(std::ranges::count_if(standing.verdicts, &Verdict::free));
  if (free < standing.ticket.count) return missing;
  if (!standing.silence.empty())
    return with_missing(printable(standing.silence) +
                        ": the next request may take it, and this one keeps its place");
  // A ticket says of conditions on readings only in words that it has them.
  return with_missing("it starts in a moment, unless conditions of its own keep it");
}

}  // namespace

std::string reason(const Standing& standing, const Snapshot& snapshot, const Style& style) {
  std::string text = why_not_yet(standing, snapshot, style);
  if (const auto& expected_s = standing.ticket.expected_s)
    text += fmt::format("{}expected to take {} ({})", text.empty() ? "" : "; ",
                        duration_for_people(*expected_s), source(standing.ticket));
  return text;
}

Standing told(Standing standing, const Snapshot& snapshot, const Style& style) {
  standing.reason = reason(standing, snapshot, style);
  if (standing.starts_at_s)
    standing.reason =
        fmt::format("to start about {}; {}", clock_time(*standing.starts_at_s, style), standing.reason);
  return standing;
}

}  // namespace berth::view
