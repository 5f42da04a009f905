#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "berth/core/decision.h"
#include "berth/core/ledger.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// Who stands in the queue before a ticket, as far as it has to know.
///
/// All names are noted at the join and none later: one with an earlier id that appears later is forged, and
/// overtakes nobody. Only where later tickets can have their turn before it (it yields, or keeps the fair
/// order) those that come later are noted too. The tickets themselves are read from the nearest on and only
/// as far as a decision asks, which is seldom far, since whoever stands behind somebody need not know who
/// stands before that one. Where something is free, those who came first of all are read too, until they
/// have taken it. So neither a join nor a hand-over costs more in a longer queue, unless the order is fair,
/// or somebody far back starts.
///
/// What changes it is called with the gate held, unless it says otherwise.
class EarlierRivals {
 public:
  /// REQUIRES: the directory outlives this.
  EarlierRivals(const LeaseDirectory& directory, bool with_later)
      : directory_(directory), with_later_(with_later) {}

  /// `ids` are those in the queue, in order.
  /// `newest`: of those, without any that is ahead of the clock by days.
  void note(std::vector<TicketId> ids, TicketId newest) {
    unread_ = std::move(ids);
    newest_ = newest;
    is_listed_ = true;
  }

  /// Lets go of those that no longer wait.
  /// `mine`: whose they are.
  Result<void> refresh(TicketId mine);

  /// Reads some more, from the end that is asked for, and removes those that are dead and may be removed by
  /// this user.
  Result<void> read_on(const Ticket& mine, const ReadOn& wanted);

  /// Reads, without the gate, all that have not been read, for a decision that will ask for them. In the gate
  /// one question to each then tells whether it still waits. Those that do not clearly wait are left.
  void read_ahead();

  /// Adds those that were read, that are rivals of mine (but where `all` were asked for), and that waited at
  /// the last refresh; in no order.
  void add_to(Ledger& ledger) const;
  /// Those that have not been read, in order.
  const std::vector<TicketId>& unread() const { return unread_; }

  /// Whether one is still in the queue that has a dozen others between itself and `mine`.
  bool has_far_one(TicketId mine) const;

  void forget();

 private:
  struct Known {
    Ticket ticket;
    sys::Descriptor file;  ///< of the first ones
  };

  Result<void> list_anew(TicketId mine);
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
