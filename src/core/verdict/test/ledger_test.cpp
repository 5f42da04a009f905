#include "berth/verdict/ledger.h"

#include <doctest/doctest.h>

namespace berth::ledger_test {
namespace {

Ledger with(std::initializer_list<std::uint64_t> ids) {
  Ledger ledger;
  for (const std::uint64_t id : ids) {
    Ticket ticket;
    ticket.id = TicketId{id};
    ledger.tickets.push_back(ticket);
  }
  return ledger;
}

TEST_CASE("a ticket is named by as many last digits as it takes") {
  const Ledger ledger = with({0x1a2b, 0x3c2b, 0x4d});
  CHECK(ticket_named(ledger, "000000000000004d").value()->id == TicketId{0x4d});
  CHECK(ticket_named(ledger, "d").value()->id == TicketId{0x4d});
  CHECK(ticket_named(ledger, "a2b").value()->id == TicketId{0x1a2b});
}

TEST_CASE("digits that several tickets end in name none of them") {
  const auto named = ticket_named(with({0x1a2b, 0x3c2b}), "2b");
  REQUIRE(!named);
  CHECK(named.error().code == ErrorCode::usage);
  CHECK(named.error().message == "2b could be 001a2b, 003c2b; give more digits");
}

TEST_CASE("the number of a job that is over means no lease whose id ends in it") {
  const Ledger ledger = with({0x4567890123456012});
  CHECK(ticket_named(ledger, "12").error().code == ErrorCode::failure);
  CHECK(ticket_named(ledger, "56012").error().code == ErrorCode::failure);
  CHECK(ticket_named(ledger, "456012").has_value());
  CHECK(ticket_named(ledger, "4567890123456012").has_value());
}

TEST_CASE("an id of no live ticket is a failure, and what is no id a wrong use") {
  const Ledger ledger = with({0x1a2b});
  CHECK(ticket_named(ledger, "ff").error().code == ErrorCode::failure);
  for (const char* text : {"", "1A2B", "0x1a2b", "00000000000001a2b", "train"})
    CHECK(ticket_named(ledger, text).error().code == ErrorCode::usage);
}

TEST_CASE("a ticket's short name is enough to name it") {
  const Ledger ledger = with({0xabcdef123456, 0x111111123456, 0x222222654321});
  CHECK(short_name(ledger, TicketId{0x222222654321}) == "654321");
  CHECK(short_name(ledger, TicketId{0xabcdef123456}) == "f123456");
  for (const Ticket& ticket : ledger.tickets)
    CHECK(ticket_named(ledger, short_name(ledger, ticket.id)).value()->id == ticket.id);
  CHECK(short_name({}, TicketId{7}) == "000007");
}

TEST_CASE("a request and a lease of one id are found each by its phase") {
  Ledger ledger = with({0x1a2b, 0x1a2b, 0x4d});
  ledger.tickets[0].phase = TicketPhase::granted;
  ledger.tickets[1].phase = TicketPhase::waiting;
  CHECK(find_ticket(ledger, TicketId{0x1a2b}, TicketPhase::granted) == &ledger.tickets[0]);
  CHECK(find_ticket(ledger, TicketId{0x1a2b}, TicketPhase::waiting) == &ledger.tickets[1]);
  CHECK(find_ticket(ledger, TicketId{0x4d}, ledger.tickets[2].phase) == &ledger.tickets[2]);
  CHECK(find_ticket(ledger, TicketId{0x3c}, TicketPhase::waiting) == nullptr);
  CHECK(ticket_named(ledger, "0000000000001a2b", TicketPhase::waiting).value() == &ledger.tickets[1]);
  CHECK(ticket_named(ledger, "2b", TicketPhase::granted).value() == &ledger.tickets[0]);
}

}  // namespace
}  // namespace berth::ledger_test
