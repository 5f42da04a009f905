#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "berth/verdict/ledger.h"
#include "berth/verdict/queue_rules.h"

// Decides which tickets of a queue start now, which have a reservation and from when, and which
// wait behind which. It is EASY backfill (Lifka, 1995) for requests that compete for only a part of
// the devices: the first that cannot start has a reservation, and a later one may start before it
// if that does not delay it.
namespace berth {

/// Whether a hold ends before its time if somebody waits for it.
enum class Leaves {
  in_time,     ///< no
  when_asked,  ///< as soon as a request that does not yield could start by that
  anyhow,      ///< it is about to end, whoever waits
};

/// What a lease or a reservation has of a device, or will have.
struct Hold {
  std::size_t device = 0;
  Moment from = 0;
  Moment until = kNever;  ///< expected end; kNever: not known
  bool whole = true;
  std::uint64_t bytes = 0;  ///< if it is a part
  TicketId owner{};         ///< the lease that has it; none: no lease
  Leaves leaves = Leaves::in_time;
  Moment left_by = kNever;  ///< unless in_time: if it is asked now, it has ended by then

  bool operator==(const Hold&) const = default;
};

/// A waiting ticket, with what the order of the queue depends on.
struct Wish {
  TicketId id;
  std::uint32_t uid = 0;
  std::size_t candidates = 0;  ///< the index of its set in QueueState::sets
  unsigned count = 1;
  bool shared = false;
  std::uint64_t bytes = 0;         ///< of each device, if a part of it is enough
  std::optional<Moment> length{};  ///< its time limit
  /// Without a time limit: for how long the devices are kept for it. nullopt: for what is assumed.
  std::optional<Moment> likely{};
  /// How long it is expected to last, for the order of turns alone. nullopt: it does not know that
  /// order.
  std::optional<Moment> expected{};
  Moment since = 0;                     ///< when it came, if it is expected to last for some time
  Moment longest_wait = kNever;         ///< having waited so long, it has its turn first if it came first
  bool yields = false;                  ///< it starts when the wishes that do not yield leave it room
  std::optional<OrderNumber> number{};  ///< as Ticket::number
  /// It is stopped, or its own conditions hold it back. It counts as if it did not wait, and keeps
  /// its place.
  bool skipped = false;

  bool operator==(const Wish&) const = default;
};

/// A queue and the devices that it waits for; devices are named by their indices.
struct QueueState {
  Moment now = 0;
  Moment second = 1;                             ///< so many moments are a second
  std::vector<std::uint64_t> room_bytes{};       ///< for each device: the memory for parts if nobody has any
  std::vector<std::vector<std::size_t>> sets{};  ///< sets of candidates, each ascending
  std::vector<Hold> holds{};
  std::vector<Wish> wishes{};  ///< in the order of their turns
};

struct StartsNow {
  std::vector<std::size_t> devices;
  bool operator==(const StartsNow&) const = default;
};
/// No later request delays it.
struct ReservedFrom {
  Moment from =
      0;  ///< now: it starts as soon as those that leave have left, and is kept what is free already
  std::vector<std::size_t> devices;
  bool operator==(const ReservedFrom&) const = default;
};
struct WaitsBehind {
  std::optional<TicketId> rival;  ///< the last one before it; nullopt: it waits for something whose end
                                  ///< nobody knows
  bool operator==(const WaitsBehind&) const = default;
};
using Assignment = std::variant<StartsNow, ReservedFrom, WaitsBehind>;

/// The turn of each wish, in the order of the queue. Pure. A wish starts if it is not skipped
/// and could start without delaying a reservation; of two with the same request, the one that came
/// first. As long as no lease lasts longer than expected, no later wish moves a reservation to a
/// later time. A reservation does not wait for what leaves: from the moment at which this is all
/// that is missing, its devices are kept for it.
std::vector<Assignment> schedule(const QueueState& queue, const QueueRules& rules);

/// The wishes that could start now, each if those before it took nothing of what is free: their
/// indices, in the order of the queue.
std::vector<std::size_t> able_to_start(const QueueState& queue, const QueueRules& rules);

struct ExpectedStart {
  Moment from = 0;
  std::vector<std::size_t> devices{};
  bool operator==(const ExpectedStart&) const = default;
};
/// About when each wish starts and on what, in the order of the queue, if each job with a time
/// limit takes all of it. nullopt: that is not known, because a job that it waits for has no time
/// limit, or because it is behind the first kForeseen of the queue, or yields. REQUIRES: a hold
/// without a time limit never ends (kNever).
std::vector<std::optional<ExpectedStart>> expected_starts(const QueueState& queue, const QueueRules& rules);
inline constexpr std::size_t kForeseen = 100;

/// What the wish has of the devices, or will have, with this turn.
std::vector<Hold> holds_of(const QueueState& queue, const Wish& wish, const Assignment& assignment,
                           const QueueRules& rules);

/// Whether two holds have the same device at the same time.
bool meet(const Hold& a, const Hold& b);

// What has gone on for long goes on for longer still: run times have no typical size. Of those
// tried on published ones, this factor makes the queue wait least where half say how long they take
// and half do not.
inline constexpr Moment kLonger = 3;

/// When a lease that began at `since` with the time limit `length` is expected to end; later than
/// `now`. If its time limit is over, it ends soon. If it has none and has lasted longer than is
/// assumed, or than is `likely` for it, it is expected to go on for kLonger times as long as it has
/// lasted so far. `second`: how many moments a second has.
Moment expected_end(Moment since, std::optional<Moment> length, Moment now, const QueueRules& rules,
                    Moment second = 1, std::optional<Moment> likely = {});

}  // namespace berth
