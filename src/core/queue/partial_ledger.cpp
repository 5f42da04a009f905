#include "berth/queue/partial_ledger.h"

#include "berth/queue/queue_order.h"

namespace berth {
namespace {

// Later tickets do not change behind which ticket this one sleeps.
bool are_all_unread_later(const Ticket& mine, const Ledger& ledger) {
  return mine.expected_s && !mine.yield_s && mine.id < ledger.first_unread;
}

}  // namespace

void leave_out(Ledger& ledger, const std::vector<TicketId>& unread) {
  ledger.unread = unread.size();
  if (!unread.empty()) ledger.first_unread = unread.front();
}

bool is_partial(const Ledger& ledger) {
  return ledger.unread > 0;
}

std::size_t unread_before(const Ticket& mine, const Ledger& ledger) {
  return are_all_unread_later(mine, ledger) ? 0 : ledger.unread;
}

std::optional<Ledger> those_in_front(const Ledger& ledger, const Ticket& mine) {
  if (!is_partial(ledger) || mine.yield_s) return std::nullopt;
  Ledger front;
  front.odd = ledger.odd;
  front.ended = ledger.ended;
  for (const Ticket& ticket : ledger.tickets) {
    const bool waits = ticket.phase == TicketPhase::waiting;
    if (waits && may_go_past(ticket)) return std::nullopt;
    if (!waits || ticket.id == mine.id || ticket.id < ledger.first_unread) front.tickets.push_back(ticket);
  }
  return front;
}

bool depends_on_unread(const Plan& plan, const Ticket& mine, const Ledger& ledger) {
  if (!is_partial(ledger)) return false;
  if (mine.number) return true;
  if (const auto* blocked = std::get_if<Blocked>(&plan))
    return blocked->held_back || !are_all_unread_later(mine, ledger);
  const auto* me = std::get_if<Behind>(&plan);
  if (me == nullptr) return true;
  const bool is_nearer_unread = me->rival < ledger.first_unread && !are_all_unread_later(mine, ledger);
  return is_nearer_unread || !me->unguarded.empty() || (!me->in_the_way.empty() && !me->front_suffices);
}

// A ticket that knows its rival reads the first tickets of the queue, which mostly take what is
// free.
ReadOn more_to_read(const Plan& plan, const Ticket& mine, const Ledger& ledger, bool all) {
  const auto* me = std::get_if<Behind>(&plan);
  const bool front =
      me != nullptr && ledger.first_unread < me->rival && me->unguarded.empty() && !may_go_past(mine);
  return {all, front};
}

}  // namespace berth
