#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/prometheus.h"
#include "berth/base/error.h"
#include "berth/http/answer.h"
#include "berth/lease/look.h"
#include "berth/machines/host.h"
#include "berth/usage/usage.h"
#include "berth/verdict/verdict.h"
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

/// What has changed in a host's entry since the event `since` (view::host_change_json).
struct HostChange {
  std::uint64_t since = 0;
  http::Part text;
};

/// A host with its entry as text. The text is made once, and the events about the host share it.
struct PostedHost {
  std::shared_ptr<const Host> host;
  http::Part entry;
  http::Frame event;   ///< of the stream /api/v1/hosts/events
  http::Frame change;  ///< of the stream /api/v1/hosts/changes
};
/// `number`: of the host's events, larger than any before.
PostedHost post(Host host, const http::Part& entry, std::uint64_t number,
                const std::optional<HostChange>& change = {});

/// /api/v1/hosts, its two streams, and /api/v1/match: the same on an agent, which is one host, and
/// on a hub. `head.number` is that of the event `summary`, which says which hosts are left; it is
/// larger than any host's number. Pure.
void publish_hosts(const std::vector<PostedHost>& posted, const view::HostsHead& head,
                   http::Published& published);

}  // namespace berth::agent

namespace berth::view {

/// What nvgpu's agent answers for its machine, with the same keys, as JSON. An unknown value is
/// null. A leased device is not available. If no process is seen on it, its lease's owner counts as
/// its user.
std::string nvgpu_report(std::string_view hostname, const Facts& facts, const Ledger& ledger,
                         std::int64_t now_s);

/// What nvgpu's master lists for a machine that does not answer.
std::string nvgpu_error(std::string_view message);

}  // namespace berth::view
