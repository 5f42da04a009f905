#include "berth/queue/gate_decision.h"

#include <doctest/doctest.h>

#include <vector>

#include "berth/verdict/test/machine.h"

namespace berth::partial_ledger_test {
namespace {

using namespace test;

Ticket waiting(std::uint64_t id) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.candidates = {uuid_of(0)};
  return ticket;
}

/// A lease, and some who wait. Tickets 3 and 4 are left out.
Ledger partial() {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2), waiting(5), waiting(10)};
  leave_out(ledger, {TicketId{3}, TicketId{4}});
  return ledger;
}

TEST_CASE("whether those who are left out could change a plan, and who is read next") {
  struct Case {
    const char* when;
    Plan plan;
    bool depends;
    bool front = false;
  };
  const std::vector<Case> cases{
      {"too little is free, and one that is left out may be the rival", Blocked{}, true},
      {"its own conditions do not hold", Blocked{{}, true}, true},
      {"it would take something", Granted{}, true},
      {"the rival is nearer than all that are left out", Behind{TicketId{5}}, false},
      {"nearer ones may wait", Behind{TicketId{2}}, true},
      {"the rival does not watch all", Behind{TicketId{5}, {uuid_of(0)}}, true},
      {"what is kept for others would be enough", Behind{TicketId{5}, {}, {TicketId{2}}}, true, true},
      {"what is kept for those in front would be enough", Behind{TicketId{5}, {}, {TicketId{2}}, true},
       false},
  };
  for (const Case& each : cases) {
    CAPTURE(each.when);
    Ledger ledger = partial();
    CHECK(depends_on_unread(each.plan, waiting(10), ledger) == each.depends);
    if (each.depends) {
      CHECK(more_to_read(each.plan, waiting(10), ledger, false) == ReadOn{false, each.front});
    }
    Ticket numbered = waiting(10);
    numbered.number = OrderNumber{QueueOrder::fair, 1};
    CHECK(depends_on_unread(each.plan, numbered, ledger));
    leave_out(ledger, {});
    CHECK(!depends_on_unread(each.plan, numbered, ledger));
  }
}

TEST_CASE("later ones that are left out do not count, unless it yields to them") {
  Ledger ledger = partial();
  leave_out(ledger, {TicketId{11}, TicketId{12}, TicketId{13}});
  Ticket mine = waiting(10);
  CHECK(unread_before(mine, ledger) == 3);
  mine.expected_s = 600;
  CHECK(unread_before(mine, ledger) == 0);
  CHECK(!depends_on_unread(Blocked{}, mine, ledger));
  CHECK(depends_on_unread(Blocked{{}, true}, mine, ledger));
  CHECK(!depends_on_unread(Behind{TicketId{2}}, mine, ledger));
  mine.yield_s = 60;
  CHECK(unread_before(mine, ledger) == 3);
  CHECK(depends_on_unread(Blocked{}, mine, ledger));
}

TEST_CASE("those in front are the leases and whoever came before all that are left out") {
  Ledger ledger = partial();
  const auto front = those_in_front(ledger, waiting(10));
  REQUIRE(front.has_value());
  CHECK(front->tickets == std::vector{lease(1, uuid_of(0)), waiting(2), waiting(10)});
  CHECK(!is_partial(*front));

  Ticket yields = waiting(10);
  yields.yield_s = 60;
  CHECK(!those_in_front(ledger, yields));
  ledger.tickets[2].expected_s = 600;  // its turn may be before that of ticket 2
  CHECK(!those_in_front(ledger, waiting(10)));
  ledger = partial();
  leave_out(ledger, {});
  CHECK(!those_in_front(ledger, waiting(10)));
}

}  // namespace
}  // namespace berth::partial_ledger_test
