#pragma once

#include <set>
#include <variant>
#include <vector>

#include "berth/core/select.h"
#include "berth/core/verdict.h"

namespace berth {

/// An earlier waiting rival stands before me: sleep until it is gone. It is the last of them.
struct Behind {
  TicketId rival;

  bool operator==(const Behind&) const = default;
};
/// These devices are mine, if the store can lock them.
struct Granted {
  Choice choice;

  bool operator==(const Granted&) const = default;
};
/// I am first of my rivals, and too few devices are free.
struct Blocked {
  std::vector<Verdict> verdicts;

  bool operator==(const Blocked&) const = default;
};
using Plan = std::variant<Behind, Granted, Blocked>;

/// My earlier waiting rivals without those `passed_over`, the last of them last.
std::vector<const Ticket*> rivals_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& passed_over = {});

/// What the ticket `me` of the ledger should do next. Pure. Error: as `judge`; `failure` if `me` does not
/// wait. Two tickets are rivals if their candidates meet; first come, first served among rivals; devices that
/// no earlier waiter could use may be taken at once. Those `passed_over` (stopped: no event would end a wait
/// for them) count as if they did not wait, and keep their place.
///
/// Whoever is Behind stays so whatever stands further ahead: tickets that wait before all those of the ledger
/// could only leave it less. So the nearest of the queue are enough for that answer, and for no other.
Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& passed_over = {});

}  // namespace berth
