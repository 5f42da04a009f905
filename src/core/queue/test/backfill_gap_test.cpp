#include "berth/queue/schedule.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "berth/queue/gate_decision.h"
#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::backfill_gap_test {
namespace {

using namespace test;

constexpr std::int64_t kNowS = 100'000;
constexpr Moment kNow = kNowS * kSecond;
constexpr std::int64_t kHour = 3600;

Ticket waiter(std::uint64_t id, std::vector<std::string> candidates, unsigned count) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.candidates = std::move(candidates);
  ticket.count = count;
  ticket.user = "ada";
  return ticket;
}

Ticket timed_lease(std::uint64_t id, unsigned device, std::int64_t time_s) {
  Ticket ticket = lease(id, uuid_of(device));
  ticket.granted_boot_s = kNowS;
  ticket.time_s = time_s;
  return ticket;
}

std::vector<Verdict> left_for(const Request& request, const Ledger& ledger, const Facts& facts) {
  const Ticket last = newcomer(request, *candidates(request, facts), ledger, facts);
  return behind_the_queue(*judge(request, ledger, facts), last, ledger, facts, {}, kNow);
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

TEST_CASE("one that is skipped keeps nothing") {
  Ledger ledger;
  ledger.tickets = {waiter(2, {uuid_of(0)}, 1)};
  const Facts facts = machine(1);
  const Ticket last = newcomer({}, {uuid_of(0)}, ledger, facts);
  CHECK(behind_the_queue(*judge({}, ledger, facts), last, ledger, facts, {TicketId{2}}, kNow)[0].free());
}

TEST_CASE("where gaps are filled, whoever ends in time may have what is kept") {
  Facts facts = machine(2);
  facts.policy.queue.backfill = true;
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
    held.granted_boot_s = kNowS - *rc::gen::inRange<std::int64_t>(0, kHour);
    if (*rc::gen::arbitrary<bool>()) held.time_s = *rc::gen::inRange<std::int64_t>(1, 4 * kHour);
    ledger.tickets.push_back(std::move(held));
  }
  const auto waiting = *rc::gen::inRange(0, 4);
  for (int i = 0; i < waiting; ++i) {
    const auto wanted = *rc::gen::inRange(1U, 16U);  // a bit for each device
    std::vector<std::string> uuids;
    for (unsigned device = 0; device < 4; ++device) {
      if ((wanted >> device & 1U) != 0) uuids.push_back(uuid_of(device));
    }
    Ticket ticket = waiter(100 + id++, std::move(uuids), 1);
    ticket.count = *rc::gen::inRange(1U, static_cast<unsigned>(ticket.candidates.size()) + 1);
    if (*rc::gen::arbitrary<bool>()) ticket.time_s = *rc::gen::inRange<std::int64_t>(1, 4 * kHour);
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
  if (*rc::gen::arbitrary<bool>()) request.time_s = *rc::gen::inRange<std::int64_t>(1, 4 * kHour);
  if (*rc::gen::arbitrary<bool>()) {
    request.shared = true;
    request.promise_bytes = *rc::gen::inRange<std::uint64_t>(1, 80) << 30U;
  }
  return request;
}

TEST_CASE("a newcomer is told that enough is left just where it would be granted") {
  holds_for_any([] {
    Facts facts = machine(4);
    facts.policy.queue.backfill = *rc::gen::arbitrary<bool>();
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
  });
}

/// Of those who wait only the first and the nearest.
Ledger leaving_out(const Ledger& ledger, std::size_t first, std::size_t nearest) {
  Ledger some = ledger;
  std::vector<TicketId> left_out;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::waiting) left_out.push_back(ticket.id);
  }
  left_out.pop_back();  // me
  left_out.erase(left_out.begin(), left_out.begin() + static_cast<std::ptrdiff_t>(first));
  left_out.resize(left_out.size() - nearest);
  std::erase_if(some.tickets, [&](const Ticket& ticket) {
    return std::ranges::find(left_out, ticket.id) != left_out.end();
  });
  leave_out(some, left_out);
  return some;
}

TEST_CASE("where those who came first leave too little, nobody who is left out changes that") {
  std::size_t sufficed = 0;
  const auto one_world = [&] {
    Facts facts = machine(4);
    facts.policy.queue.backfill = true;
    const auto books = rc::gen::resize(rc::kNominalSize, rc::gen::exec(random_books));
    Ledger ledger = *books;
    for (std::uint64_t later = 1000; later <= 3000; later += 1000) {
      for (Ticket more : (*books).tickets) {
        more.id.value += later;
        if (more.phase == TicketPhase::waiting) ledger.tickets.push_back(std::move(more));
      }
    }
    const bool in_turns = *rc::gen::inRange(0, 4) == 0;
    std::set<TicketId> skipped;
    for (Ticket& ticket : ledger.tickets) {
      if (ticket.phase != TicketPhase::waiting) continue;
      if (*rc::gen::inRange(0, 8) == 0) ticket.yield_s = 30;
      ticket.uid = *rc::gen::inRange(0U, 4U);
      if (in_turns) ticket.number = fair(*rc::gen::inRange(0, 4));
      ticket.held_back = *rc::gen::inRange(0, 6) == 0;
      if (*rc::gen::inRange(0, 6) == 0) skipped.insert(ticket.id);
    }
    const Request request = random_request();
    ledger.tickets.push_back(newcomer(request, *candidates(request, facts), ledger, facts));
    const TicketId me = ledger.tickets.back().id;
    const std::size_t others = count_waiting(ledger) - 1;
    if (others == 0) return;
    const auto first = *rc::gen::inRange<std::size_t>(0, others);
    const auto nearest = *rc::gen::inRange<std::size_t>(0, others - first);

    const Plan some = plan(leaving_out(ledger, first, nearest), facts, request, me, skipped, kNow).value();
    const auto* behind = std::get_if<Behind>(&some);
    if (behind == nullptr || !behind->front_suffices) return;
    ++sufficed;
    const Plan whole = plan(ledger, facts, request, me, skipped, kNow).value();
    RC_ASSERT(std::holds_alternative<Behind>(whole));
  };
  // Few of the worlds are such a case.
  holds_for_any([&] {
    for (int world = 0; world < 40; ++world) one_world();
  });
  CHECK(sufficed > 0);
}

}  // namespace
}  // namespace berth::backfill_gap_test
