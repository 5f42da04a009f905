#include "berth/render/waiting.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/core/units.h"
#include "berth/render/explain.h"

namespace berth::render {
namespace {

/// Never going to be given to this request, so that nobody waits for it.
bool is_out_of_question(const Verdict& verdict) {
  return verdict.failed && *verdict.failed <= Clause::static_filters && *verdict.failed != Clause::healthy;
}

}  // namespace

std::string what_is_missing(const std::vector<Verdict>& verdicts, const Snapshot& snapshot,
                            const Style& style) {
  const auto devices = devices_of(verdicts, snapshot);
  std::size_t free = 0;
  std::size_t possible = 0;
  std::string busy;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    if (devices[i] == nullptr || is_out_of_question(verdict)) continue;
    ++possible;
    if (verdict.free()) {
      ++free;
    } else {
      busy += fmt::format("{}GPU {} {}", busy.empty() ? "" : ", ", label(*devices[i]),
                          short_state(verdict, *devices[i], style).text);
    }
  }
  return fmt::format("{} of {} free{}{}", free, possible, busy.empty() ? "" : "; ", busy);
}

std::string waiting_line(const Queueing& queueing, std::chrono::seconds waited, const Style& style) {
  const std::string elapsed =
      waited.count() > 0 ? " for " + duration_for_people(waited.count()) : std::string();
  if (queueing.behind == nullptr)
    return fmt::format("first in line{}; {}", elapsed,
                       what_is_missing(queueing.verdicts, queueing.snapshot, style));
  const std::string command = short_command(queueing.behind->command);
  return fmt::format("no. {} in line{}, behind {}{}", queueing.position, elapsed,
                     printable(queueing.behind->user),
                     command.empty() ? std::string() : fmt::format(" ({})", command));
}

}  // namespace berth::render
