#pragma once

#include <memory>
#include <set>
#include <string>

#include "berth/agent/prometheus.h"
#include "berth/base/error.h"
#include "berth/http/answer.h"
#include "berth/lease/look.h"
#include "berth/usage/past_leases.h"
#include "berth/verdict/idleness.h"
#include "berth/view/answers_json.h"

namespace berth::agent {

/// What the agent tells of a machine in addition to what a look saw.
struct PublishContext {
  std::string hostname;
  std::int64_t now_s = 0;
  view::UtcOffset utc_offset_s = view::always_utc;
  std::int64_t every_s = 1;
  IdleTimes idle;  ///< of the leases, as far as the agent has watched them
  view::LeaseCounts counts;
  std::vector<std::string> warnings{};  ///< about what cannot be seen from here
  view::HistoryHealth history{};
  std::shared_ptr<const RecordedLeases> past{};  ///< for the timeline; null: none is known
};

/// All pages and events for this look. If the look failed, the pages say why. `number` is larger by
/// at least two than that of the look before. Pure.
http::Published publish(const Result<leasing::World>& look, const PublishContext& context,
                        std::uint64_t number);

/// Counts the leases that were granted or have ended, from one look to the next.
class LeaseCounter {
 public:
  /// Does not count the leases of the first ledger, because they were there before.
  void see(const Ledger& ledger);
  const view::LeaseCounts& counts() const { return counts_; }

 private:
  bool first_ = true;
  std::set<TicketId> live_;
  view::LeaseCounts counts_;
};

}  // namespace berth::agent
