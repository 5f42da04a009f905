#include "berth/queue/standing.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"
#include "property.h"

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

TEST_CASE(
    "a position counts all earlier rivals, and the last of them is named, whatever each could be given") {
  holds_for_any([] {
    Ledger ledger;
    const auto count = *rc::gen::inRange<std::uint64_t>(1, 12);
    for (std::uint64_t id = 1; id <= count; ++id) {
      std::vector<std::string> candidates;
      for (const unsigned device : {0U, 1U, 2U})
        if (*rc::gen::arbitrary<bool>()) candidates.push_back(uuid_of(device));
      if (candidates.empty()) candidates.emplace_back(kEveryDevice);
      ledger.tickets.push_back(waiting(id, std::move(candidates)));
      ledger.tickets.back().held_back = *rc::gen::arbitrary<bool>();
    }
    for (const Standing& each : standings(ledger, machine(3))) {
      std::vector<TicketId> rivals;
      for (const Ticket& other : ledger.tickets)
        if (other.id < each.ticket.id && !other.held_back && are_rivals(other, each.ticket))
          rivals.push_back(other.id);
      RC_ASSERT(each.position == rivals.size() + 1);
      RC_ASSERT(each.behind.has_value() == !rivals.empty());
      if (each.behind) RC_ASSERT(each.behind->id == rivals.back());
    }
  });
}

TEST_CASE("a first is told what it waits for, a later one whom") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2, {uuid_of(0)}), waiting(3, {uuid_of(0)})};
  const auto queue = standings(ledger, machine(1));
  REQUIRE(queue[0].verdicts.size() == 1);
  CHECK(queue[0].verdicts[0].failed == Clause::not_leased);
  CHECK(queue[1].verdicts.empty());
}

TEST_CASE("one that is stopped is skipped and keeps its place") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2, {uuid_of(0)}), waiting(3, {uuid_of(0)})};
  const auto queue = standings(ledger, machine(1), {TicketId{2}});
  CHECK(queue[0].stopped);
  CHECK(queue[1].position == 1);
  CHECK_FALSE(queue[1].behind.has_value());
}

TEST_CASE("one that is held back is told whether a limit of its user is why") {
  Facts facts = machine(2);
  facts.asker_uid = 7;
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiting(2, {std::string(kEveryDevice)})};
  ledger.tickets[0].uid = ledger.tickets[1].uid = 8;
  ledger.tickets[1].held_back = true;
  // Limits of the asking user say nothing about another.
  facts.limits = UserLimits{7, {.gpus = Limit{0, "limits.gpus"}}, {}};
  CHECK(standings(ledger, facts)[0].verdicts[1].free());
  facts.limits_of_waiters[8] = UserLimits{8, {.gpus = Limit{1, "limits.gpus"}}, {}};
  const auto queue = standings(ledger, facts);
  CHECK(queue[0].verdicts[1].failed == Clause::within_limit);
  CHECK(queue[0].verdicts[1].reason == "its user is at a limit of the site file");
  CHECK(queue[0].limited == queue[0].verdicts[1].reason);
}

TEST_CASE("who is to start before an earlier rival fills a gap, until that one starts") {
  Facts facts = machine(2);
  facts.policy.queue.backfill = true;
  facts.booted_at_s = 1000;
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), lease(2, uuid_of(1)), waiting(3, {std::string(kEveryDevice)}),
                    waiting(4, {std::string(kEveryDevice)}), waiting(5, {std::string(kEveryDevice)})};
  for (Ticket& ticket : ledger.tickets) ticket.granted_boot_s = 0;
  ledger.tickets[0].time_s = 300;
  ledger.tickets[1].time_s = 100;
  ledger.tickets[2].count = 2;
  ledger.tickets[2].time_s = ledger.tickets[4].time_s = 500;
  ledger.tickets[3].time_s = 200;
  const auto queue = standings(ledger, facts, {}, 50);
  CHECK(queue[0].starts_at_s == 1300);
  CHECK_FALSE(queue[0].fills_gap_until_s.has_value());
  CHECK(queue[1].starts_at_s == 1100);
  CHECK(queue[1].fills_gap_until_s == 1300);
  CHECK(queue[1].fills_gap_on == std::vector{uuid_of(1)});
  CHECK_FALSE(queue[2].fills_gap_until_s.has_value());
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
