#include "berth/queue/schedule.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::plan_test {
namespace {

using namespace test;
using Uuids = std::vector<std::string>;

Uuids uuids_of(std::initializer_list<unsigned> indices) {
  Uuids uuids;
  for (const unsigned index : indices) uuids.push_back(uuid_of(index));
  return uuids;
}

Ticket waiter(std::uint64_t id, Uuids candidates, unsigned count = 1) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.candidates = std::move(candidates);
  ticket.count = count;
  return ticket;
}

Ledger books(std::vector<Ticket> tickets) {
  Ledger ledger;
  ledger.tickets = std::move(tickets);
  return ledger;
}

Request request_for(unsigned count) {
  Request request;
  request.count = count;
  return request;
}

Plan planned(const Ledger& ledger, unsigned devices, unsigned count, std::uint64_t me,
             const std::set<TicketId>& skipped = {}) {
  const Result<Plan> result = plan(ledger, machine(devices), request_for(count), TicketId{me}, skipped);
  REQUIRE(result);
  return *result;
}

TEST_CASE("the first of its rivals takes free devices at once") {
  CHECK(planned(books({waiter(5, uuids_of({0, 1}))}), 2, 1, 5) == Plan(Granted{{uuids_of({0}), {}}}));
}

Request cold() {
  Request request;
  request.conditions = {Expression::parse("temp<=20").value()};
  return request;
}

TEST_CASE("a first whom only conditions of its own keep from what is free is held back") {
  Facts facts = machine(2);
  for (Device& device : facts.snapshot.devices) device.temperature_c = 30;
  Ledger ledger = books({waiter(5, uuids_of({0, 1}))});
  const Result<Plan> held = plan(ledger, facts, cold(), TicketId{5});
  REQUIRE(std::holds_alternative<Blocked>(*held));
  CHECK(std::get<Blocked>(*held).held_back);

  ledger.tickets = {lease(1, uuid_of(0)), lease(2, uuid_of(1)), waiter(5, uuids_of({0, 1}))};
  CHECK_FALSE(std::get<Blocked>(*plan(ledger, facts, cold(), TicketId{5})).held_back);
}

TEST_CASE("one that is held back is skipped, and once it is not it is before the others again") {
  Ledger ledger = books({waiter(4, uuids_of({0})), waiter(5, uuids_of({0}))});
  ledger.tickets[0].held_back = true;
  CHECK(std::holds_alternative<Granted>(planned(ledger, 1, 1, 5)));
  ledger.tickets[0].held_back = false;
  CHECK(planned(ledger, 1, 1, 5) == Plan(Behind{TicketId{4}}));
}

TEST_CASE("where gaps are filled, whose turn it is but for its own conditions is held back in any place") {
  Facts facts = machine(2);
  facts.policy.queue.backfill = true;
  for (Device& device : facts.snapshot.devices) device.temperature_c = 30;
  Ticket timed = lease(1, uuid_of(0));
  timed.granted_boot_s = 1000;
  timed.time_s = 7200;
  Request request = cold();
  request.time_s = 60;
  Ledger ledger = books({timed, waiter(4, uuids_of({0, 1}), 2), waiter(5, uuids_of({0, 1}))});
  ledger.tickets.back().time_s = 60;
  const Result<Plan> fits = plan(ledger, facts, request, TicketId{5}, {}, 1000);
  REQUIRE(std::holds_alternative<Blocked>(*fits));
  CHECK(std::get<Blocked>(*fits).held_back);
  ledger.tickets.back().time_s = request.time_s = 9000;
  CHECK(std::holds_alternative<Behind>(*plan(ledger, facts, request, TicketId{5}, {}, 1000)));
}

TEST_CASE("it waits for releases when too few are free, and tells what holds each") {
  const Plan result = planned(books({lease(3, uuid_of(0)), waiter(5, uuids_of({0, 1}), 2)}), 2, 2, 5);
  const auto* blocked = std::get_if<Blocked>(&result);
  REQUIRE(blocked);
  CHECK(blocked->verdicts.size() == 2);
  CHECK(blocked->verdicts[0].failed == Clause::not_leased);
  CHECK(blocked->verdicts[1].free());
}

TEST_CASE("a later one waits behind the last earlier rival, although devices are free") {
  const Ledger ledger = books({waiter(5, uuids_of({0, 1}), 2), waiter(6, uuids_of({1}), 1),
                               waiter(9, uuids_of({0, 1})), waiter(7, uuids_of({2}))});
  CHECK(planned(ledger, 3, 1, 9) == Plan(Behind{TicketId{5}}));
  CHECK(planned(ledger, 3, 1, 6) == Plan(Behind{TicketId{5}}));
}

TEST_CASE("who shares no candidate is no rival") {
  const Ledger ledger = books({waiter(5, uuids_of({0, 1}), 2), waiter(6, uuids_of({2}))});
  CHECK(planned(ledger, 3, 1, 6) == Plan(Granted{{uuids_of({2}), {}}}));
}

TEST_CASE("devices that no earlier waiter could use are taken at once") {
  const Ledger ledger =
      books({lease(1, uuid_of(0)), waiter(5, uuids_of({0, 1}), 2), waiter(6, uuids_of({1, 2, 3}), 2)});
  CHECK(planned(ledger, 4, 2, 6) == Plan(Granted{{uuids_of({2, 3}), {}}}));
  CHECK(planned(ledger, 4, 3, 6) == Plan(Behind{TicketId{5}, uuids_of({2, 3})}));
}

TEST_CASE("whoever computes there already waits behind nobody") {
  const Ledger ledger = books({waiter(5, uuids_of({0})), waiter(6, uuids_of({0}))});
  Request request;
  request.adopts_running_process = true;
  const auto granted = plan(ledger, machine(1), request, TicketId{6}, {}, 0);
  REQUIRE(granted.has_value());
  CHECK(std::holds_alternative<Granted>(*granted));
}

TEST_CASE("a stopped one is skipped and keeps its place") {
  const Ledger ledger = books({waiter(5, uuids_of({0})), waiter(6, uuids_of({0}))});
  CHECK(planned(ledger, 1, 1, 6) == Plan(Behind{TicketId{5}}));
  CHECK(planned(ledger, 1, 1, 6, {TicketId{5}}) == Plan(Granted{{uuids_of({0}), {}}}));
  CHECK(planned(ledger, 1, 1, 5, {TicketId{5}}) == Plan(Granted{{uuids_of({0}), {}}}));
}

TEST_CASE("a ticket that meets every device is everybody's rival") {
  const Ledger ledger = books({waiter(5, {std::string(kEveryDevice)}), waiter(6, uuids_of({1}))});
  CHECK(planned(ledger, 2, 1, 6) == Plan(Behind{TicketId{5}}));
  CHECK(planned(ledger, 2, 1, 5) == Plan(Granted{{uuids_of({0}), {}}}));
}

TEST_CASE("only a ticket that waits has a plan") {
  const Ledger ledger = books({lease(1, uuid_of(0))});
  for (const std::uint64_t id : {1, 2}) {
    const Result<Plan> result = plan(ledger, machine(1), request_for(1), TicketId{id});
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::failure);
  }
}

/// A machine with a queue, where everything random happens: tickets come, take what the plan
/// grants, and end.
struct World {
  Facts facts = machine(4);
  Ledger ledger;
  std::map<TicketId, Request> requests;
  std::uint64_t next_id = 1;

  void join() {
    Request request;
    request.shared = *rc::gen::arbitrary<bool>();
    if (request.shared) request.promise_bytes = *rc::gen::element<std::uint64_t>(5, 15, 30) * kGiB;
    request.devices = *rc::gen::element<Uuids>(Uuids{}, Uuids{"0", "1"}, Uuids{"1", "2", "3"}, Uuids{"3"});
    request.count = *rc::gen::element(1U, 1U, 2U);
    if (request.devices.size() == 1) request.count = 1;
    Ticket ticket = waiter(next_id++, candidates(request, facts).value(), request.count);
    ticket.shared = request.shared;
    ticket.promise_bytes = request.promise_bytes;
    ledger.tickets.push_back(ticket);
    requests[ticket.id] = request;
  }

  void end_one() {
    if (ledger.tickets.empty()) return;
    const auto victim = *rc::gen::arbitrary<std::size_t>() % ledger.tickets.size();
    ledger.tickets.erase(ledger.tickets.begin() + static_cast<std::ptrdiff_t>(victim));
  }

  /// Everybody asks the plan, in random order. True if somebody got something.
  bool serve() {
    bool granted = false;
    std::vector<TicketId> waiting;
    for (const Ticket& ticket : ledger.tickets) {
      if (ticket.phase == TicketPhase::waiting) waiting.push_back(ticket.id);
    }
    std::rotate(
        waiting.begin(),
        waiting.begin() + static_cast<std::ptrdiff_t>(
                              waiting.empty() ? 0 : *rc::gen::arbitrary<std::size_t>() % waiting.size()),
        waiting.end());
    for (const TicketId id : waiting) granted |= ask(id);
    return granted;
  }

  Ticket& ticket(TicketId id) {
    return *std::find_if(ledger.tickets.begin(), ledger.tickets.end(),
                         [&](const Ticket& t) { return t.id == id; });
  }

  /// The nearest of those before it are enough to know that it is behind one.
  void check_nearest(TicketId id, const Plan& result) const {
    Ledger nearest = ledger;
    for (const Ticket& other : ledger.tickets) {
      if (other.phase != TicketPhase::waiting || other.id >= id) continue;
      std::erase_if(nearest.tickets, [&](const Ticket& ticket) { return ticket.id == other.id; });
      const Plan partial = plan(nearest, facts, requests.at(id), id).value();
      // One that finds nobody who looks after all that it waits for reads on.
      const auto* behind = std::get_if<Behind>(&partial);
      if (behind && behind->unguarded.empty()) RC_ASSERT(partial == result);
    }
  }

  bool ask(TicketId id) {
    const Plan result = plan(ledger, facts, requests.at(id), id).value();
    check_order(ticket(id), result);
    check_nearest(id, result);
    const auto* grant = std::get_if<Granted>(&result);
    if (!grant) return false;
    RC_ASSERT(grant->choice.uuids.size() == requests.at(id).count);
    ticket(id).devices = grant->choice.uuids;
    ticket(id).phase = TicketPhase::granted;
    return true;
  }

  /// Who is behind is behind a rival; who is granted takes nothing that an earlier waiter could
  /// use.
  void check_order(const Ticket& mine, const Plan& result) const {
    const auto* behind = std::get_if<Behind>(&result);
    const auto* grant = std::get_if<Granted>(&result);
    std::optional<TicketId> last_rival;
    for (const Ticket& other : ledger.tickets) {
      if (other.phase != TicketPhase::waiting || other.id >= mine.id) continue;
      for (const std::string& uuid : other.candidates) {
        if (std::count(mine.candidates.begin(), mine.candidates.end(), uuid) > 0)
          last_rival = std::max(last_rival, std::optional(other.id));
        if (grant) RC_ASSERT(std::count(grant->choice.uuids.begin(), grant->choice.uuids.end(), uuid) == 0);
      }
    }
    if (behind) check_guards(mine, *behind, last_rival);
    if (!last_rival) RC_ASSERT(!behind);
  }

  /// It sleeps behind the last rival that waits for all that it waits for, or behind the last.
  void check_guards(const Ticket& mine, const Behind& behind, std::optional<TicketId> last_rival) const {
    const auto guards = [&](const Ticket& other, const std::string& uuid) {
      return is_candidate(other, uuid);
    };
    std::optional<TicketId> last_guard;
    for (const Ticket& other : ledger.tickets) {
      if (other.phase != TicketPhase::waiting || other.id >= mine.id) continue;
      if (std::ranges::all_of(mine.candidates, [&](const std::string& uuid) { return guards(other, uuid); }))
        last_guard = std::max(last_guard, std::optional(other.id));
    }
    RC_ASSERT(behind.rival == last_guard.value_or(last_rival.value_or(TicketId{})));
    RC_ASSERT(behind.unguarded.empty() == last_guard.has_value());
  }

  void check_books() const {
    for (const Device& device : facts.snapshot.devices) {
      const std::vector<const Ticket*> leases = leases_on(ledger, device.uuid);
      std::uint64_t promised = 0;
      for (const Ticket* lease : leases) {
        RC_ASSERT(lease->shared || leases.size() == 1);
        promised += lease->promise_bytes;
      }
      RC_ASSERT(promised <= *device.memory.total_bytes - *device.memory.reserved_bytes);
    }
  }
};

TEST_CASE("the plan keeps its promises over random histories") {
  holds_for_any("nothing is leased twice, promises fit, order holds among rivals, and nobody is stuck", [] {
    World world;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::element(0, 0, 0, 1, 2, 2));
    for (const int step : steps) {
      if (step == 0) world.join();
      if (step == 1) world.end_one();
      if (step == 2) world.serve();
      world.check_books();
    }
    // When every lease ends, round after round, everybody is served in the end.
    for (std::size_t round = 0; round <= steps.size() + 1; ++round) {
      while (world.serve()) world.check_books();
      std::erase_if(world.ledger.tickets, [](const Ticket& t) { return t.phase == TicketPhase::granted; });
    }
    RC_ASSERT(world.ledger.tickets.empty());
  });
}

}  // namespace
}  // namespace berth::plan_test
