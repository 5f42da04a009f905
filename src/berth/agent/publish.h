#pragma once

#include <set>
#include <string>

#include "berth/agent/answer.h"
#include "berth/core/conduct.h"
#include "berth/core/error.h"
#include "berth/lease/look.h"
#include "berth/render/json.h"
#include "berth/render/prometheus.h"

namespace berth::serve {

/// What is told of a machine besides what a look saw.
struct Telling {
  std::string hostname;
  std::int64_t now_s = 0;
  std::int32_t utc_offset_s = 0;
  std::int64_t every_s = 1;
  IdleTimes idle;  ///< of the leases, as far as they were watched
  render::LeaseCounts counts;
  std::vector<std::string> warnings{};  ///< of what cannot be seen from here
  render::HistoryHealth history{};
};

/// Every page and the events for this look. Where it failed, the pages say why. `number` is larger by at
/// least two than that of the look before. Pure.
Published publish(const Result<leasing::World>& look, const Telling& telling, std::uint64_t number);

/// Counts what was granted and has ended, from one look to the next.
class LeaseCounter {
 public:
  /// What the first ledger has was there before, and is not counted.
  void see(const Ledger& ledger);
  const render::LeaseCounts& counts() const { return counts_; }

 private:
  bool first_ = true;
  std::set<TicketId> live_;
  render::LeaseCounts counts_;
};

}  // namespace berth::serve
