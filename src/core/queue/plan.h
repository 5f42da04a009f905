#pragma once

#include <set>
#include <variant>
#include <vector>

#include "berth/queue/backfill.h"
#include "berth/verdict/choice.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// It is the turn of waiting rivals: I sleep until `rival` no longer waits, or somebody rings me.
struct Behind {
  /// The rival behind which I sleep: of the rivals that came before me, the last one that waits for
  /// every device that I wait for; if none does, the last of them. If all of them came later than
  /// I, the one whose turn is right before mine.
  TicketId rival;
  /// The candidates of mine that I have to watch myself: those that `rival` does not wait for. If
  /// `rival` came later than I, all of them, since it may rely on me.
  std::vector<std::string> unguarded{};
  /// With backfill: the tickets for which devices are kept, now or later, that would be enough for
  /// me.
  std::vector<TicketId> in_the_way{};
  /// These tickets came before all that a partial ledger leaves out, so what those want changes
  /// nothing.
  bool front_suffices = false;

  bool operator==(const Behind&) const = default;
};
/// These devices are mine, if the store can lock them.
struct Granted {
  Choice choice;

  bool operator==(const Granted&) const = default;
};
/// No rival keeps me from starting now. Too few devices are free, or my own conditions or limits
/// hold me back.
struct Blocked {
  std::vector<Verdict> verdicts;
  bool held_back = false;  ///< my own conditions or limits do, so that others skip me

  bool operator==(const Blocked&) const = default;
};
using Plan = std::variant<Behind, Granted, Blocked>;

/// My waiting rivals whose turn is before mine, in the order of their turns. Those `skipped`
/// and those held back are left out.
std::vector<const Ticket*> rivals_before(const Ticket& mine, const Ledger& ledger, Moment now,
                                         const std::set<TicketId>& skipped = {});

/// My waiting rivals that came before me, in the order of coming. I may sleep behind one of these,
/// since none of them sleeps behind me. If all keep the order of coming, they are the same as those
/// of `rivals_before`.
std::vector<const Ticket*> guards_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& skipped = {});

/// Whether enough devices are free for the request of this ticket, whoever else waits. If so,
/// `plan` needs all tickets whose turn may be before mine.
bool is_enough_free(const Ticket& mine, const Ledger& ledger, const Facts& facts, const Request& request);

/// What the ticket `me` of the ledger should do next. Pure. Error: as `judge`; `failure` if `me`
/// does not wait. `now`: of the boot clock.
///
/// Two tickets are rivals if they have a candidate in common. The rivals whose turn is before mine
/// get what `schedule` gives them, now or from a moment on; without backfill, every device that
/// they could be given. I may take what is free beside that. Tickets that are `skipped` or held
/// back (Ticket::held_back) count as if they did not wait, and keep their place. Skipped are
/// tickets whose process is stopped: no event would end a wait for them. If I am expected to last
/// for some time and too little is free for me, the order of coming decides, whosever turn is
/// first: I sleep behind who came before me, who rings me; or I am blocked by the devices, and ring
/// others.
///
/// The ledger may be partial. `depends_on_unread` (partial_ledger.h) says whether the plan holds
/// all the same.
Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& skipped = {}, Moment now = 0);

}  // namespace berth
