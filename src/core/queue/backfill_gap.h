#pragma once

#include <set>
#include <string>
#include <vector>

#include "berth/queue/host_queue.h"

namespace berth {

/// What earlier requests leave for a ticket. The earlier requests get what `schedule` gives them,
/// now or from a moment on; without backfill, everything that they could be given.
class Gap {
 public:
  /// What is left behind all tickets whose turn is before that of `mine` and that are not
  /// `skipped`. The ticket and the facts must outlive this object.
  Gap(const Ticket& mine, const Ledger& ledger, const Facts& facts, const std::set<TicketId>& skipped,
      Moment now);

  /// Whether the ticket may have the device. The verdict says that the device is free for it.
  bool is_open(const Verdict& verdict) const;

  /// The tickets that are to have some of this device at a time when `mine` would have it, each
  /// once.
  std::vector<TicketId> owners(const Verdict& verdict) const;

 private:
  struct Kept {
    Hold hold;
    TicketId owner;
  };
  std::vector<const Kept*> in_the_way_of(const Verdict& verdict) const;

  const Ticket& mine_;
  const SitePolicy& policy_;
  HostQueue queue_;
  std::vector<Kept> kept_;
};

/// The ticket of a request if it were made now: it came last of all.
Ticket newcomer(const Request& request, std::vector<std::string> candidates, const Ledger& ledger,
                const Facts& facts);

/// Verdicts on the request of a newcomer. Devices that `judge` calls free but that the queue keeps
/// for an earlier request fail with Clause::not_awaited.
std::vector<Verdict> behind_the_queue(std::vector<Verdict> verdicts, const Ticket& newcomer,
                                      const Ledger& ledger, const Facts& facts,
                                      const std::set<TicketId>& skipped, Moment now);

}  // namespace berth
