#include "berth/core/gap.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/core/plan.h"
#include "machine.h"

namespace berth {
namespace {

using namespace test;

constexpr Moment kNow = 100'000;
constexpr Moment kHour = 3600;

Ticket waiter(std::uint64_t id, std::vector<std::string> candidates, unsigned count) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.candidates = std::move(candidates);
  ticket.count = count;
  ticket.user = "ada";
  return ticket;
}

Ticket timed_lease(std::uint64_t id, unsigned device, Moment time_s) {
  Ticket ticket = lease(id, uuid_of(device));
  ticket.granted_boot_s = kNow;
  ticket.time_s = time_s;
  return ticket;
}

std::vector<Verdict> left_for(const Request& request, const Ledger& ledger, const Facts& facts) {
  const Ticket last = newcomer(request, *candidates(request, facts), ledger, facts);
  return behind_the_line(*judge(request, ledger, facts), last, ledger, facts, {}, kNow);
}

TEST_CASE("what is free and somebody waits for is kept for him") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), waiter(2, {uuid_of(0), uuid_of(1)}, 2)};
  const auto verdicts = left_for({}, ledger, machine(3));
  CHECK(verdicts[0].failed == Clause::not_leased);
  CHECK(verdicts[1].failed == Clause::not_awaited);
  CHECK(verdicts[1].reason == "kept for ada, who asked earlier");
  REQUIRE(verdicts[1].culprits.size() == 1);
  CHECK_FALSE(verdicts[1].culprits[0].lease.has_value());
  CHECK(verdicts[2].free());
}

TEST_CASE("one that is passed over keeps nothing") {
  Ledger ledger;
  ledger.tickets = {waiter(2, {uuid_of(0)}, 1)};
  const Facts facts = machine(1);
  const Ticket last = newcomer({}, {uuid_of(0)}, ledger, facts);
  CHECK(behind_the_line(*judge({}, ledger, facts), last, ledger, facts, {TicketId{2}}, kNow)[0].free());
}

TEST_CASE("where gaps are filled, whoever ends in time may have what is kept") {
  Facts facts = machine(2);
  facts.policy.line.backfill = true;
  Ledger ledger;
  ledger.tickets = {timed_lease(1, 0, 2 * kHour), waiter(2, {uuid_of(0), uuid_of(1)}, 2)};
  Request request;
  CHECK(left_for(request, ledger, facts)[1].free());  // assumed to take an hour
  request.time_s = 3 * kHour;
  CHECK(left_for(request, ledger, facts)[1].failed == Clause::not_awaited);
}

/// Leases, some with times, and waiters of several sizes, some of which share, on four devices.
Ledger random_books() {
  Ledger ledger;
  std::uint64_t id = 1;
  for (unsigned device = 0; device < 4; ++device) {
    if (*rc::gen::arbitrary<bool>()) continue;
    Ticket held = lease(id++, uuid_of(device));
    held.granted_boot_s = kNow - *rc::gen::inRange<Moment>(0, kHour);
    if (*rc::gen::arbitrary<bool>()) held.time_s = *rc::gen::inRange<Moment>(1, 4 * kHour);
    ledger.tickets.push_back(std::move(held));
  }
  const auto waiting = *rc::gen::inRange(0, 4);
  for (int i = 0; i < waiting; ++i) {
    const auto wanted = *rc::gen::nonEmpty(rc::gen::unique<std::vector<unsigned>>(rc::gen::inRange(0U, 4U)));
    std::vector<std::string> uuids;
    for (const unsigned device : wanted) uuids.push_back(uuid_of(device));
    Ticket ticket = waiter(100 + id++, std::move(uuids), 1);
    ticket.count = *rc::gen::inRange(1U, static_cast<unsigned>(wanted.size()) + 1);
    if (*rc::gen::arbitrary<bool>()) ticket.time_s = *rc::gen::inRange<Moment>(1, 4 * kHour);
    if (ticket.count == 1 && *rc::gen::arbitrary<bool>()) {
      ticket.shared = true;
      ticket.promise_bytes = *rc::gen::inRange<std::uint64_t>(1, 80) << 30U;
    }
    ledger.tickets.push_back(std::move(ticket));
  }
  return ledger;
}

Request random_request() {
  Request request;
  request.count = *rc::gen::inRange(1U, 4U);
  if (*rc::gen::arbitrary<bool>()) request.time_s = *rc::gen::inRange<Moment>(1, 4 * kHour);
  if (*rc::gen::arbitrary<bool>()) {
    request.shared = true;
    request.promise_bytes = *rc::gen::inRange<std::uint64_t>(1, 80) << 30U;
  }
  return request;
}

TEST_CASE("a newcomer is told that enough is left just where it would be granted") {
  CHECK(rc::check([] {
    Facts facts = machine(4);
    facts.policy.line.backfill = *rc::gen::arbitrary<bool>();
    const Ledger ledger = random_books();
    const Request request = random_request();

    const auto verdicts = left_for(request, ledger, facts);
    const bool enough =
        std::cmp_greater_equal(std::ranges::count_if(verdicts, &Verdict::free), request.count);

    Ledger joined = ledger;
    joined.tickets.push_back(newcomer(request, *candidates(request, facts), ledger, facts));
    const auto planned = plan(joined, facts, request, joined.tickets.back().id, {}, kNow);
    RC_ASSERT(planned.has_value());
    RC_ASSERT(std::holds_alternative<Granted>(*planned) == enough);
  }));
}

}  // namespace
}  // namespace berth
