#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "berth/queue/decision.h"
#include "berth/store/lease_directory.h"
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
/// too, until they have taken it. So neither a join nor a hand-over costs more in a longer queue,
/// unless the order is fair, or a ticket far back starts.
///
/// Functions that change this object are called with the gate held, unless they say otherwise.
class EarlierRivals {
 public:
  /// REQUIRES: the directory outlives this object.
  EarlierRivals(const LeaseDirectory& directory, bool with_later)
      : directory_(directory), with_later_(with_later) {}

  /// `ids` are those in the queue, in order. `newest`: the newest of these, without ids that are
  /// ahead of the clock by days.
  void note(std::vector<TicketId> ids, TicketId newest) {
    unread_ = std::move(ids);
    newest_ = newest;
    is_listed_ = true;
  }

  /// Forgets the tickets that no longer wait. `mine`: the ticket whose rivals they are.
  Result<void> refresh(TicketId mine);

  /// Reads some more tickets, from the given end, and removes dead ones that this user may remove.
  Result<void> read_on(const Ticket& mine, const ReadOn& wanted);

  /// Reads, without the gate, all tickets that have not been read, for a decision that will need
  /// them. Inside the gate, one question to each then tells whether it still waits. A ticket that
  /// does not clearly wait stays unread.
  void read_ahead();

  /// Adds the tickets that were read and that waited at the last refresh, in no order. Only rivals
  /// of mine, unless `all`.
  void add_to(Ledger& ledger) const;
  /// The tickets that have not been read, in order.
  const std::vector<TicketId>& unread() const { return unread_; }

  /// Whether a ticket is still in the queue that has a dozen others between itself and `mine`.
  bool has_far_one(TicketId mine) const;

  void forget();

 private:
  struct Known {
    Ticket ticket;
    sys::Descriptor file;  ///< of the first ones
    bool away = false;     ///< it has a lease; it may come back to its place (OwnTicket::wait_again)
  };

  Result<void> list_anew(TicketId mine);
  bool knows_one() const;
  void read_anew_who_is_back();
  void read(TicketId id, std::uint64_t now_ns, const Ticket& mine, bool all);
  void keep(Ticket rival, sys::Descriptor opened);

  const LeaseDirectory& directory_;
  bool with_later_;
  TicketId newest_{};             ///< that has been noted
  std::vector<TicketId> unread_;  ///< in order
  std::vector<Known> known_;
  std::optional<std::size_t> most_open_;  ///< files of `known_`
  bool is_listed_ = false;                ///< none of `unread_` has gone since the gate was entered
  std::size_t batch_ = 0;
  std::size_t front_batch_ = 0;
};

}  // namespace berth::store
