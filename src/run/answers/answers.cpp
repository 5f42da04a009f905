#include "berth/answers/answers.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/queue/standing.h"
#include "berth/sys/clock.h"
#include "berth/verdict/site_policy.h"
#include "berth/view/refusal.h"
#include "berth/view/verdict_text.h"

namespace berth::answers {

view::Style plain_style() {
  view::Style style;
  style.width = view::kUnlimited;
  style.now_s = std::time(nullptr);
  style.utc_offset_s = sys::utc_offset_s;
  return style;
}

std::vector<Verdict> with_reasons(std::vector<Verdict> verdicts, const Snapshot& snapshot,
                                  const view::Style& style) {
  const auto devices = view::devices_of(verdicts, snapshot);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] != nullptr && !verdicts[i].free())
      verdicts[i].reason = view::sentence(verdicts[i], *devices[i], style);
  }
  return verdicts;
}

namespace {

// Inside a lease no limit counts, but whoever asks for more than the lease has would ask for it
// outside next.
std::string limit_outside(const leasing::Explained& found) {
  const Facts& facts = found.world.facts;
  if (!facts.within || facts.policy.limits.empty()) return "";
  const auto gpus = limits_of(facts.policy.limits, leasing::asker_here(), WeekMinute{}).best.gpus;
  return gpus && found.request.count > gpus->most ? "your limit is " + gpu_limit_in_words(*gpus) : "";
}

}  // namespace

view::Why facts_of(const leasing::Explained& found) {
  return {found.request,
          found.world.facts.snapshot,
          found.verdicts,
          found.possible,
          found.looser,
          found.standing ? &*found.standing : nullptr,
          found.starts_at_s,
          found.never,
          found.world.facts.within.has_value(),
          limit_outside(found)};
}

Error in_words(const leasing::ExplainedRefusal& refusal, const view::Style& style) {
  std::string text = view::refusal(facts_of(refusal), style);
  while (text.ends_with('\n')) text.pop_back();
  if (refusal.code == ErrorCode::timed_out)
    text = fmt::format("gave up after {}; {}", duration_for_people(*refusal.waited), text);
  return {refusal.code, std::move(text)};
}

std::vector<std::string> all_notes(const leasing::Session& session, std::vector<std::string> notes) {
  notes.insert(notes.begin(), session.warnings().begin(), session.warnings().end());
  std::ranges::transform(notes, notes.begin(), [](const std::string& note) { return printable(note); });
  return notes;
}

Result<HostReport> host_report(leasing::World world, const IdleTimes& idle, const view::Style& style) {
  HostReport report;
  BERTH_LET(report.verdicts, leasing::judge_each_in_queue(world));
  report.ledger = listed_part(world.ledger);
  report.waiters = listed_standings(world.ledger, report.ledger, world.facts, world.stopped, world.looked_at);
  for (Standing& one : report.waiters) one.reason = view::reason(one, world.facts.snapshot, style);
  report.facts = std::move(world.facts);
  report.assumed = std::move(world.assumed);
  report.idle = idle;
  return report;
}

}  // namespace berth::answers
