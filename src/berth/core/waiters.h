#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/core/verdict.h"

namespace berth {

/// How a waiting ticket stands among its rivals.
struct Waiter {
  const Ticket* ticket = nullptr;  ///< of the ledger
  std::size_t position = 1;        ///< 1: first of its rivals
  const Ticket* behind = nullptr;  ///< the last rival before it; null for the first
  bool stopped = false;            ///< others pass it over until it goes on
  std::vector<Verdict> verdicts;   ///< of the first of its rivals: why it is not granted what it asks for
};

/// The queue in order. Those `stopped` count as if they did not wait, and keep their place. What a ticket
/// says of its request leaves its conditions out, so a first may wait although enough is free by its
/// verdicts.
std::vector<Waiter> waiters(const Ledger& ledger, const Facts& facts, const std::set<TicketId>& stopped = {});

/// How many tickets wait.
std::size_t count_waiting(const Ledger& ledger);

}  // namespace berth
