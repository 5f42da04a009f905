#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "berth/core/ledger.h"

// Who of a line starts now, for whom a place is kept and from when, and who waits behind whom. EASY backfill
// (Lifka, 1995) over requests that compete for a part of the devices only: the first who cannot start has a
// reservation, and whoever comes later may start in front of it if that does not delay it.
namespace berth {

/// Seconds of the boot clock, which nobody sets.
using Moment = std::int64_t;
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();

/// What somebody has of a device, or will have.
struct Hold {
  std::size_t device = 0;
  Moment from = 0;
  Moment until = kNever;  ///< expected; kNever: nobody can say
  bool whole = true;
  std::uint64_t bytes = 0;  ///< of a part
  TicketId owner{};         ///< whose lease it is; none: nobody's

  bool operator==(const Hold&) const = default;
};

/// A ticket that waits, as far as the order of the line goes by it.
struct Wish {
  TicketId id;
  std::uint32_t uid = 0;
  std::size_t candidates = 0;  ///< the place of their set in Line::sets
  unsigned count = 1;
  bool shared = false;
  std::uint64_t bytes = 0;             ///< of each device, where a part of it is enough
  std::optional<Moment> length{};      ///< how long it says that it takes at most, in seconds
  bool yields = false;                 ///< when it starts is up to those who do not
  std::optional<std::int64_t> turn{};  ///< as Ticket::turn
  /// Stopped, or held back by conditions of its own. It counts as if it did not wait, and keeps its place.
  bool passed_over = false;

  bool operator==(const Wish&) const = default;
};

/// A line and what it waits for, by the places of the devices.
struct Line {
  Moment now = 0;
  std::vector<std::uint64_t> room_bytes{};       ///< a device each: what it has for parts when nobody has any
  std::vector<std::vector<std::size_t>> sets{};  ///< of candidates, each ascending
  std::vector<Hold> holds{};
  std::vector<Wish> wishes{};  ///< in the order of their turns
};

/// Whose turn it is first.
enum class TurnOrder {
  fifo,  ///< whose request came first
  fair,  ///< who has fewer GPUs (src/berth/core/turn_order.h)
};

/// What a site has laid down about its line.
struct LineRules {
  Moment assumed_s = 3600;  ///< what a request is taken to last that does not say
  /// false: nobody starts in front of an earlier rival.
  bool backfill = true;
  TurnOrder order = TurnOrder::fifo;

  /// Whether a request can be given what an earlier one waits for.
  bool lets_others_pass() const { return backfill || order == TurnOrder::fair; }

  bool operator==(const LineRules&) const = default;
};

struct StartsNow {
  std::vector<std::size_t> devices;
  bool operator==(const StartsNow&) const = default;
};
/// Nobody who comes later delays it.
struct ReservedFrom {
  Moment from = 0;
  std::vector<std::size_t> devices;
  bool operator==(const ReservedFrom&) const = default;
};
struct WaitsBehind {
  std::optional<TicketId> rival;  ///< the last one before it; nullopt: for what nobody can say when it ends
  bool operator==(const WaitsBehind&) const = default;
};
using Turn = std::variant<StartsNow, ReservedFrom, WaitsBehind>;

/// The turn of each wish, in the order of the line. Pure. Whoever is not passed over and could start without
/// delaying a reservation starts; of two who ask for the same, the one that came first. As long as nobody
/// goes on for longer than is expected of him, no reservation is moved back by whoever comes later.
std::vector<Turn> schedule(const Line& line, const LineRules& rules);

/// About when each starts, in the order of the line, if whoever has a time takes all of it. nullopt: that is
/// not to be said, as somebody whom it waits for has no time, or as it stands behind the first kForeseen of
/// the line, or yields. REQUIRES: what has no time ends never (kNever).
std::vector<std::optional<Moment>> expected_starts(const Line& line, const LineRules& rules);
inline constexpr std::size_t kForeseen = 100;

/// What the wish then has of the devices, or will have.
std::vector<Hold> holds_of(const Line& line, const Wish& wish, const Turn& turn, const LineRules& rules);

/// Whether two holds are of one device at one time.
bool meet(const Hold& a, const Hold& b);

/// When what began at `since` and says that it takes `length` is expected to end; later than `now`. Past what
/// it said it ends soon. Past what is assumed of it, it goes on for three times as long as it has.
Moment expected_end(Moment since, std::optional<Moment> length, Moment now, const LineRules& rules);

}  // namespace berth
