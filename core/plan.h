#pragma once

#include <variant>
#include <vector>

#include "berth/core/select.h"
#include "berth/core/verdict.h"

namespace berth {

/// An earlier waiting rival stands before me: sleep until it is gone.
struct Behind {
  TicketId rival;
};
/// These devices are mine, if the store can lock them.
struct Granted {
  Choice choice;
};
/// I am first of my rivals, and too few devices are free.
struct Blocked {
  std::vector<Verdict> verdicts;
};
using Plan = std::variant<Behind, Granted, Blocked>;

/// What the ticket `me` of the ledger should do next. Pure. Error: as `judge`.
/// Two tickets are rivals if their candidates meet; first come, first served among rivals; devices that no
/// earlier waiter could use may be taken at once.
Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me);

}  // namespace berth
