#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "berth/queue/backfill.h"
#include "berth/queue/ticket_decision.h"
#include "berth/store/lease_directory.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/descriptor.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

/// The tickets in the queue before a ticket, as far as it has to know them.
///
/// All names are noted at the join, and none later. So if a ticket with an earlier id appears
/// later, it is forged, and overtakes nobody, unless its file was read here before: it was granted,
/// and is back. Only if later tickets can have their turn before this one (it yields, or
/// may_go_past), later names are noted too. The tickets themselves are read from the nearest on,
/// and only as far as a decision needs. That is seldom far, because a ticket behind a rival need
/// not know who is before that rival. If something is free, the first tickets of the queue are read
/// too, until they have taken it.
///
/// A decision that needs all tickets is prepared for without the gate (read_ahead). In the gate, a
/// ticket that was read before is asked whether it still waits, and read again if its text may be
/// another. Where the order is by response ratio, only those_that_matter are asked
/// (src/core/queue/queue_order.h). So neither a join nor a hand-over costs more inside the gate in
/// a longer queue, unless the order is fair, or a ticket far back starts.
///
/// Functions that change this object are called with the gate held, unless they say otherwise.
class EarlierRivals {
 public:
  /// REQUIRES: the directory outlives this object.
  EarlierRivals(const LeaseDirectory& directory, bool with_later)
      : directory_(directory), with_later_(with_later) {}

  /// `ids` are those in the queue, in order. `newest`: that of IdsTaken.
  void note(std::vector<TicketId> ids, TicketId newest);

  /// Notes which tickets have left the queue, and which are back. `mine`: the ticket whose rivals
  /// they are. `leases`: as they are now.
  Result<void> refresh(const Ticket& mine, const Ledger& leases);

  /// Asks those that were read before and matter to `mine` whether they still wait, each once after
  /// a refresh. True: there was one to ask. `now`: of the boot clock.
  bool ask(const Ticket& mine, Moment now);

  /// The next `ask` goes by the name of this ticket, not by its file: a ticket whose name was
  /// removed does not wait, and its locks do not tell. May be called without the gate.
  void ask_by_name(TicketId id);

  /// Reads some more tickets, from the given end, and removes dead ones that this user may remove.
  Result<void> read_on(const Ticket& mine, const ReadOn& wanted);

  /// Reads, without the gate, all tickets that have not been read, for a decision that will need
  /// them: also those that are not noted yet. A ticket that does not clearly wait stays unread.
  void read_ahead(const Ticket& mine);

  /// Adds the tickets that were read, in no order. Those that matter wait, as the last `ask` says;
  /// the others did when they were read, and have a name in the queue. Only rivals of mine, unless
  /// `all`.
  void add_to(Ledger& ledger) const;
  /// The tickets that have not been read, in order.
  const std::vector<TicketId>& unread() const { return unread_; }

  /// Whether the eighth of the noted tickets before `mine` is still in the queue. Where no later
  /// ticket can come first, those that have been read do not count.
  bool has_far_one(TicketId mine) const;

  void forget();

 private:
  struct Known {
    Ticket ticket;
    sys::FileIdentity identity;
    off_t let_go = 0;        ///< as in Wait, before it was read
    sys::Descriptor file{};  ///< of the first ones that matter
    bool noted = true;       ///< false: its name was only seen without the gate
    bool asked = false;      ///< since the gate was entered
  };
  /// A ticket that has a lease now, and may come back to its position (OwnTicket::wait_again).
  struct Away {
    TicketId id;
    sys::FileIdentity identity;
  };

  Result<void> list_anew(TicketId mine);
  void read_who_is_back(const Ticket& mine);
  void read(TicketId id, std::uint64_t now_ns, const Ticket& mine, bool all);
  void keep(Ticket rival, OpenTicket opened);
  std::set<TicketId> those_that_matter_to(const Ticket& mine, Moment now) const;

  const LeaseDirectory& directory_;
  bool with_later_;
  TicketId newest_{};             ///< that has been noted
  TicketId newest_ahead_{};       ///< of the last listing without the gate
  std::vector<TicketId> unread_;  ///< in order
  std::vector<Known> known_;
  std::vector<Away> away_;
  std::set<TicketId> granted_;            ///< the leases, at the last refresh
  std::optional<std::size_t> most_open_;  ///< files of `known_`
  bool is_listed_ = false;                ///< none of `unread_` has gone since the gate was entered
  std::size_t batch_ = 0;
  std::size_t front_batch_ = 0;
};

}  // namespace berth::store
