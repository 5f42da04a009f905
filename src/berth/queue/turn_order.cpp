#include "berth/queue/turn_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>

namespace berth {
namespace {

using Places = std::vector<std::size_t>;

/// Of wishes of one kind, those that yield or those that do not.
class FairOrder {
 public:
  FairOrder(std::span<const Wish> wishes, std::map<std::uint32_t, std::uint64_t> has)
      : wishes_(wishes), has_(std::move(has)) {}

  void sort(std::span<std::size_t> places) {
    while (!places.empty()) {
      const auto run = places.first(length_of_run(places));
      sort_run(run);
      places = places.subspan(run.size());
    }
  }

 private:
  /// Of those that go past each other.
  std::size_t length_of_run(std::span<const std::size_t> places) const {
    const auto end = std::ranges::find_if(places, [&](std::size_t at) { return !wishes_[at].turn; });
    return std::max<std::size_t>(1, static_cast<std::size_t>(end - places.begin()));
  }

  void sort_run(std::span<std::size_t> run) {
    struct Rank {
      std::uint64_t has;
      std::int64_t number;
      std::size_t place;
      auto operator<=>(const Rank&) const = default;
    };
    std::vector<Rank> ranks;
    for (const std::size_t place : run) {
      std::uint64_t& has = has_[wishes_[place].uid];
      ranks.push_back({has, wishes_[place].turn.value_or(0), place});
      if (!wishes_[place].passed_over) has += wishes_[place].count;
    }
    std::ranges::sort(ranks);
    std::ranges::copy(ranks | std::views::transform(&Rank::place), run.begin());
  }

  std::span<const Wish> wishes_;
  std::map<std::uint32_t, std::uint64_t> has_;
};

GpusByUser gpus_by_user(const Ledger& ledger) {
  GpusByUser has;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    has.in_all[ticket.uid] += ticket.devices.size();
    if (!ticket.yield_s) has.firmly[ticket.uid] += ticket.devices.size();
  }
  return has;
}

}  // namespace

std::int64_t next_turn(std::uint32_t uid, std::span<const Numbered> others) {
  std::optional<std::int64_t> last_granted, first_waiting;
  std::int64_t own = 0;
  for (const Numbered& other : others) {
    const std::int64_t turn = other.turn;
    if (other.uid == uid) own = std::max(own, std::min(turn, kLastTurn - other.count) + other.count);
    if (other.granted)
      last_granted = std::max(turn, last_granted.value_or(turn));
    else
      first_waiting = std::min(turn, first_waiting.value_or(turn));
  }
  return std::max(own, last_granted.value_or(first_waiting.value_or(0)));
}

std::int64_t next_turn(std::uint32_t uid, const Ledger& ledger) {
  std::vector<Numbered> others;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.turn)
      others.push_back({ticket.uid, ticket.count, *ticket.turn, ticket.phase == TicketPhase::granted});
  }
  return next_turn(uid, others);
}

Places order_of_turns(std::span<const Wish> wishes, const GpusByUser& has) {
  Places places(wishes.size());
  std::iota(places.begin(), places.end(), 0);
  const auto yielding = std::ranges::stable_partition(places, std::logical_not{},
                                                      [&](std::size_t at) { return wishes[at].yields; });
  const auto firm = static_cast<std::size_t>(yielding.begin() - places.begin());
  FairOrder(wishes, has.firmly).sort(std::span(places).first(firm));
  FairOrder(wishes, has.in_all).sort(std::span(places).subspan(firm));
  return places;
}

std::vector<const Ticket*> in_line(const Ledger& ledger, const std::set<TicketId>& passed_over,
                                   const Ticket* one_more) {
  std::vector<const Ticket*> waiting;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::waiting) waiting.push_back(&ticket);
  }
  const auto is_it = [&](const Ticket* ticket) { return ticket->id == one_more->id; };
  if (one_more != nullptr && std::ranges::none_of(waiting, is_it)) waiting.push_back(one_more);
  std::ranges::sort(waiting, {}, &Ticket::id);
  std::vector<Wish> wishes;
  for (const Ticket* ticket : waiting) {
    wishes.push_back({.id = ticket->id,
                      .uid = ticket->uid,
                      .count = ticket->count,
                      .yields = ticket->yield_s.has_value(),
                      .turn = ticket->turn,
                      .passed_over = ticket->held_back || passed_over.contains(ticket->id)});
  }
  std::vector<const Ticket*> line;
  for (const std::size_t at : order_of_turns(wishes, gpus_by_user(ledger))) line.push_back(waiting[at]);
  return line;
}

}  // namespace berth
