#include "berth/core/waiters.h"

#include <algorithm>

namespace berth {
namespace {

Request request_of(const Ticket& ticket, const Snapshot& snapshot) {
  Request request;
  request.count = ticket.count;
  request.shared = ticket.shared;
  request.promise_bytes = ticket.promise_bytes;
  for (const Device& device : snapshot.devices) {
    if (is_candidate(ticket, device.uuid)) request.devices.push_back(device.uuid);
  }
  return request;
}

std::vector<Verdict> verdicts_on(const Ticket& ticket, const Ledger& ledger, const Facts& facts) {
  Facts of_ticket = facts;
  of_ticket.mask.reset();  // ours is not its owner's
  const auto verdicts = judge(request_of(ticket, facts.snapshot), ledger, of_ticket);
  return verdicts.value_or(std::vector<Verdict>{});
}

}  // namespace

std::vector<Waiter> waiters(const Ledger& ledger, const Facts& facts, const std::set<TicketId>& stopped) {
  std::vector<const Ticket*> waiting;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::waiting) waiting.push_back(&ticket);
  }
  std::ranges::sort(waiting, {}, [](const Ticket* ticket) { return ticket->id; });
  std::vector<Waiter> queue;
  for (const Ticket* ticket : waiting) {
    Waiter waiter{ticket, 1, nullptr, stopped.contains(ticket->id), {}};
    for (const Waiter& earlier : queue) {
      if (earlier.stopped || !are_rivals(*earlier.ticket, *ticket)) continue;
      ++waiter.position;
      waiter.behind = earlier.ticket;
    }
    if (waiter.behind == nullptr && !waiter.stopped) waiter.verdicts = verdicts_on(*ticket, ledger, facts);
    queue.push_back(std::move(waiter));
  }
  return queue;
}

std::size_t count_waiting(const Ledger& ledger) {
  return static_cast<std::size_t>(std::ranges::count(ledger.tickets, TicketPhase::waiting, &Ticket::phase));
}

}  // namespace berth
