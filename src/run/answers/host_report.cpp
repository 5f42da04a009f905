#include "berth/answers/host_report.h"

#include <utility>

#include "berth/queue/listing_bounds.h"
#include "berth/view/waiting.h"

namespace berth::leasing {

Result<HostReport> host_report(World world, const IdleTimes& idle, const view::Style& style) {
  HostReport report;
  BERTH_LET(report.verdicts, judge_each_in_queue(world));
  report.ledger = listed_part(world.ledger);
  report.waiters = listed_standings(world.ledger, report.ledger, world.facts, world.stopped, world.looked_at);
  for (Standing& one : report.waiters) one.reason = view::reason(one, world.facts.snapshot, style);
  report.facts = std::move(world.facts);
  report.assumed = std::move(world.assumed);
  report.idle = idle;
  return report;
}

}  // namespace berth::leasing
