#pragma once

#include <set>
#include <variant>
#include <vector>

#include "berth/core/schedule.h"
#include "berth/core/select.h"
#include "berth/core/verdict.h"

namespace berth {

/// Waiting rivals have their turn before me: sleep until `rival` is gone, or somebody says that it is my
/// turn.
struct Behind {
  /// Of those who came before me the last that waits for all that I wait for; the last of all, where none
  /// does. Where all of them came later, the one whose turn is right before mine.
  TicketId rival;
  /// Candidates of mine that it does not look after for me: those that it does not wait for, and all where it
  /// came later, as it may then rely on me.
  std::vector<std::string> unguarded{};
  /// With backfill: enough is free for me but for what these are to have of it, now or later.
  std::vector<TicketId> in_the_way{};

  bool operator==(const Behind&) const = default;
};
/// These devices are mine, if the store can lock them.
struct Granted {
  Choice choice;

  bool operator==(const Granted&) const = default;
};
/// I am first of my rivals, and too few devices are free; or it is my turn but for conditions of my own.
struct Blocked {
  std::vector<Verdict> verdicts;
  bool held_back = false;  ///< enough is free but for those conditions, so that others pass me over

  bool operator==(const Blocked&) const = default;
};
using Plan = std::variant<Behind, Granted, Blocked>;

/// My waiting rivals whose turn is before mine, without those `passed_over` and those held back, the last of
/// them last.
std::vector<const Ticket*> rivals_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& passed_over = {});

/// The same by who came before me: one of these I may sleep behind, as none of them sleeps behind me. Where
/// nobody keeps the fair order they are those of `rivals_before`.
std::vector<const Ticket*> guards_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& passed_over = {});

/// What the ticket `me` of the ledger should do next. Pure. Error: as `judge`; `failure` if `me` does not
/// wait. Two tickets are rivals if their candidates meet. Those whose turn is before mine have what
/// `schedule` gives them, now or from a moment on; without backfill, all that they could be given. What is
/// free beside that may be taken at once. Those `passed_over` (stopped: no event would end a wait for them)
/// and those held back by conditions of their own (Ticket::held_back) count as if they did not wait, and keep
/// their place. `now`: of the boot clock.
///
/// Where too little is free whoever waits, the nearest of the queue are enough for the answer.
Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& passed_over = {}, Moment now = 0);

}  // namespace berth
