#pragma once

#include <set>
#include <string>
#include <vector>

#include "berth/core/lineup.h"

namespace berth {

/// What those who asked earlier leave to a ticket. They have what `schedule` gives them, now or from a moment
/// on; without backfill, all that they could be given.
class Gap {
 public:
  /// Behind all whose turn is before that of `mine` and who are not `passed_over`. The ticket and the facts
  /// must outlive this.
  Gap(const Ticket& mine, const Ledger& ledger, const Facts& facts, const std::set<TicketId>& passed_over,
      Moment now);

  /// Whether the ticket may have the device, which is free for it by this verdict.
  bool is_open(const Verdict& verdict) const;

  /// Who is to have some of this device at a time when the ticket would have it, each once.
  std::vector<TicketId> owners(const Verdict& verdict) const;

 private:
  struct Kept {
    Hold hold;
    TicketId owner;
  };
  std::vector<const Kept*> in_the_way_of(const Verdict& verdict) const;

  const Ticket& mine_;
  const LineRules& rules_;
  Lineup lineup_;
  std::vector<Kept> kept_;
};

/// A request as it would stand in the line if whoever asks made it now: it came the last of all.
Ticket newcomer(const Request& request, std::vector<std::string> candidates, const Ledger& ledger,
                const Facts& facts);

/// Verdicts on the request of a newcomer, where those that `judge` calls free and that the line keeps for
/// somebody else fail with Clause::not_awaited.
std::vector<Verdict> behind_the_line(std::vector<Verdict> verdicts, const Ticket& newcomer,
                                     const Ledger& ledger, const Facts& facts,
                                     const std::set<TicketId>& passed_over, Moment now);

}  // namespace berth
