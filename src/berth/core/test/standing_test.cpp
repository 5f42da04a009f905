#include "berth/core/standing.h"

#include <doctest/doctest.h>

#include "berth/core/test/machine.h"

namespace berth::test::standing_test {
namespace {

Ticket waiting(std::uint64_t id, std::vector<std::string> candidates) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.candidates = std::move(candidates);
  return ticket;
}

TEST_CASE("a position counts the earlier rivals only") {
  const Facts facts = machine(2);
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2, {uuid_of(0)}), waiting(3, {uuid_of(1)}),
                    waiting(4, {std::string(kEveryDevice)})};
  const auto queue = standings(ledger, facts);
  REQUIRE(queue.size() == 3);
  CHECK(count_waiting(ledger) == 3);
  CHECK(queue[0].position == 1);
  CHECK(queue[1].position == 1);
  CHECK(queue[2].position == 3);
  REQUIRE(queue[2].behind.has_value());
  CHECK(queue[2].behind->id == TicketId{3});
}

TEST_CASE("a first is told what it waits for, a later one whom") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2, {uuid_of(0)}), waiting(3, {uuid_of(0)})};
  const auto queue = standings(ledger, machine(1));
  REQUIRE(queue[0].verdicts.size() == 1);
  CHECK(queue[0].verdicts[0].failed == Clause::not_leased);
  CHECK(queue[1].verdicts.empty());
}

TEST_CASE("one that is stopped is passed over and keeps its place") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2, {uuid_of(0)}), waiting(3, {uuid_of(0)})};
  const auto queue = standings(ledger, machine(1), {TicketId{2}});
  CHECK(queue[0].stopped);
  CHECK(queue[1].position == 1);
  CHECK_FALSE(queue[1].behind.has_value());
}

TEST_CASE("how a wait goes is told in one line, with how long once there is something to tell") {
  Standing first{.reason = "0 of 1 free; GPU 0 leased alice 2 h"};
  CHECK(in_one_line(first) == "first in line; 0 of 1 free; GPU 0 leased alice 2 h");
  first.waited = std::chrono::seconds(300);
  CHECK(in_one_line(first) == "first in line for 5 min; 0 of 1 free; GPU 0 leased alice 2 h");
  const Standing third{.position = 3, .behind = waiting(2, {}), .reason = "behind bob (train.py)"};
  CHECK(in_one_line(third) == "no. 3 in line, behind bob (train.py)");
}

}  // namespace
}  // namespace berth::test::standing_test
