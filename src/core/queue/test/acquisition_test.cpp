#include <doctest/doctest.h>

#include <utility>

#include "berth/queue/test/asker.h"

namespace berth::acquisition::acquisition_test {
namespace {

// The way to a lease
// -----------------------------------------------------------------------------------------

TEST_CASE("it begins with a look, which asks for no locks") {
  CHECK(Asker().action == Action(Look{false}));
}

TEST_CASE("what it has seen tells which devices it could ever be given, and with these it joins") {
  Asker asker;
  CHECK(asker.looks() == Action(Join{{uuid_of(0), uuid_of(1)}}));
}

TEST_CASE("a driver that fails ends it, with what it said") {
  const Error error{ErrorCode::no_driver, "no driver"};
  CHECK(Asker().tell(LookFailed{error}) == Action(Fail{error}));
}

TEST_CASE("what no device here could ever satisfy joins no queue") {
  Asker asker;
  asker.facts = machine(0);
  CHECK(is<AskNames>(asker.looks()));
  CHECK(asker.tell(UsersNamed{}) == Action(Refuse{}));
}

TEST_CASE("what can never be satisfied is refused with the verdicts of that look, by whom each is held") {
  Asker asker(patient());
  asker.facts.snapshot.devices.pop_back();
  asker.leases = {lease(1, uuid_of(0))};
  Request request;
  request.count = 2;
  State state = begun(request, patient());
  Step step = next(state, {0ms, Looked{asker.facts, books(asker.leases), {}}});
  CHECK(step.action == Action(AskNames{{0}}));
  step = next(step.state, {0ms, UsersNamed{{{0, "bob"}}}});
  CHECK(step.action == Action(Refuse{}));
  REQUIRE(step.state.standing.verdicts.size() == 1);
  CHECK(step.state.standing.verdicts[0].culprits[0].user == "bob");
}

TEST_CASE("what is free is taken, whole") {
  Asker asker;
  asker.looks();
  CHECK(asker.decides() == Decision(Take{{uuid_of(0)}, {{uuid_of(0), true}}, 0}));
  CHECK(asker.tell(LeftGate{Taken{}}) == Action(Grant{}));
}

TEST_CASE("with a MIG instance a part of its GPU is taken") {
  Asker asker;
  split(asker.facts.snapshot, 0, 1);
  asker.facts.snapshot.devices.pop_back();
  const Device instance = asker.facts.snapshot.devices[1];
  asker.mine.candidates = {instance.uuid};
  asker.looks();
  CHECK(asker.decides() ==
        Decision(Take{{instance.uuid}, {{instance.uuid, true}, {instance.mig->parent_uuid, false}}, 0}));
}

TEST_CASE("who does not wait leaves where nothing is free, and says by whom it is held") {
  Asker asker = with_all_leased({});
  asker.looks();
  CHECK(is<Withdraw>(asker.decides()));
  CHECK(asker.tell(LeftGate{Withdrawn{}}) == Action(AskNames{{0, 1000}}));
  CHECK(asker.tell(UsersNamed{{{0, "root"}}}) == Action(Refuse{}));
  REQUIRE(asker.state().standing.verdicts.size() == 2);
  CHECK(asker.state().standing.verdicts[0].failed == Clause::not_leased);
  CHECK(asker.state().standing.verdicts[0].culprits[0].user == "root");
}

TEST_CASE("who does not wait leaves where somebody stands before it, and says who") {
  Asker asker = behind_one({});
  asker.facts.foreign_locks = {};
  CHECK(asker.goes_on() == Action(Refuse{}));
  REQUIRE(asker.state().standing.behind.has_value());
  CHECK(asker.state().standing.behind->id == TicketId{5});
  CHECK(asker.state().standing.behind->user == "bob");
}

// Old facts
// -------------------------------------------------------------------------------------------------

TEST_CASE("a lease that ended while the driver answered leaves its device to a newer answer") {
  Asker asker;
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  const NotedLeases noted{books(asker.leases), 1};
  asker.leases.clear();
  asker.tell(Looked{asker.facts, books({}), noted});
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
  CHECK(asker.looks() == Action(EnterGate{}));
  CHECK(is<Take>(asker.decides()));
}

TEST_CASE("a lease that came and ended in good order meanwhile leaves its device to a newer answer") {
  Asker asker;
  asker.looks();
  asker.changes_now = 2;
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
}

TEST_CASE("one that came and was killed meanwhile leaves its device to a newer answer") {
  Asker asker;
  asker.looks();
  asker.ended = {lease(7, uuid_of(0))};
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
}

TEST_CASE("by old facts a device is only taken to be looked at, and only after many looks") {
  Asker asker;
  const auto sees_old_facts = [&asker] {
    asker.looks();
    asker.changes_now = ++asker.changes_before;
    --asker.changes_before;
  };
  for (const bool fits : {false, true}) {
    for (int look = 1; look < 5; ++look) {
      sees_old_facts();
      REQUIRE(is<Stay>(asker.decides()));
      REQUIRE(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
    }
    sees_old_facts();
    REQUIRE(is<Take>(asker.decides()));
    REQUIRE(asker.tell(LeftGate{Taken{}}) == Action(Grant{.by_old_facts = true}));
    if (!fits) REQUIRE(asker.tell(Woken::changed) == Action(Look{false}));
  }
}

TEST_CASE("nobody is refused by facts that are older than the leases") {
  Asker asker = with_all_leased({});
  asker.looks();
  asker.leases = {lease(1, uuid_of(0)), lease(3, uuid_of(1))};
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
}

TEST_CASE("where the leases change all the time the fifth look is the last before a refusal") {
  Asker asker = with_all_leased({});
  for (std::uint64_t look = 1; look <= 4; ++look) {
    asker.looks();
    asker.leases[0].id.value = 100 + look;
    REQUIRE(is<Stay>(asker.decides()));
    REQUIRE(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
  }
  asker.looks();
  asker.leases[0].id.value = 200;
  CHECK(is<Withdraw>(asker.decides()));
}

// Locks that no ledger shows
// ---------------------------------------------------------------------------------

TEST_CASE("what seemed free and could not be locked is tried again, and then locks are asked for") {
  Asker asker;
  asker.looks();
  REQUIRE(is<Take>(asker.decides()));
  CHECK(asker.tell(LeftGate{Conflict{uuid_of(0)}}) == Action(Pause{3ms}));
  CHECK(asker.tell(Paused{}) == Action(Look{true}));
  CHECK(asker.looks() == Action(EnterGate{}));
}

TEST_CASE("a share is locked in part, with what is promised and what the device can lend at most") {
  Request share;
  share.shared = true;
  share.promise_bytes = 10 * kGiB;
  share.order = Order::index;
  State state = next(begun(share, {}), {0ms, Looked{machine(2), {}, {{}, 1}}}).state;
  Ledger ledger = books({waiter(kMe)});
  ledger.tickets[0].shared = true;
  CHECK(decide(state, {ledger, TicketId{kMe}, {}, 1}).decision ==
        Decision(Take{{uuid_of(0)}, {{uuid_of(0), false, 10 * kGiB, 40 * kGiB - 512 * kMiB}}, 0}));
}

TEST_CASE("the fifth try without the lock goes on without that device") {
  Asker asker;
  for (int attempt = 1; attempt <= 4; ++attempt) {
    asker.looks();
    REQUIRE(is<Take>(asker.decides()));
    REQUIRE(asker.tell(LeftGate{Conflict{uuid_of(0)}}) == Action(Pause{3ms}));
    asker.tell(Paused{});
  }
  asker.looks();
  REQUIRE(is<Take>(asker.decides()));
  CHECK(asker.tell(LeftGate{Conflict{uuid_of(0)}}) == Action(Look{true}));
  asker.looks();
  CHECK(asker.decides() == Decision(Take{{uuid_of(1)}, {{uuid_of(1), true}}, 0}));
}

TEST_CASE("a device that could not be locked counts as locked until something happens") {
  Asker asker = with_all_leased(patient());
  asker.leases = {lease(2, uuid_of(1))};
  for (int attempt = 1; attempt <= 5; ++attempt) {
    asker.looks();
    REQUIRE(is<Take>(asker.decides()));
    if (is<Pause>(asker.tell(LeftGate{Conflict{uuid_of(0)}}))) asker.tell(Paused{});
  }
  CHECK(is<SleepUntilReleased>(asker.goes_on()));
  asker.now = 1s;
  CHECK(asker.tell(Woken::changed) == Action(Look{false, true}));
  asker.looks();
  CHECK(is<Take>(asker.decides()));
}

TEST_CASE("before it leaves for a wait of others beside a free device it asks who has locked that") {
  Asker asker = behind_one({});
  asker.looks();
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{true}));
  asker.looks();
  CHECK(is<Withdraw>(asker.decides()));
}

// The store asks again if tickets have changed meanwhile, the loop if a rival turns out to be
// stopped.
TEST_CASE("who has locked a device is asked also if the decision is made twice in one gate") {
  Asker asker = behind_one({});
  asker.looks();
  CHECK(is<Stay>(asker.decides()));
  asker.earlier = {waiter(3), waiter(5)};
  asker.stopped = {TicketId{3}};
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{.locks = true}));
}

TEST_CASE("what an earlier decision in the same gate has found does not count") {
  SUBCASE("that a lock is hidden") {
    Asker asker = behind_one({});
    asker.looks();
    CHECK(is<Stay>(asker.decides()));
    asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
    CHECK(is<Stay>(asker.decides()));
    CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{.locks = false}));
  }
  SUBCASE("that an old driver grants") {
    Asker asker = with_all_leased(patient());
    asker.sleeps_long();
    asker.leases.pop_back();
    asker.now = 10s;
    asker.tell(Woken::tick);
    asker.looks();
    CHECK(is<Stay>(asker.decides()));
    asker.leases = {lease(1, uuid_of(0)), lease(3, uuid_of(1))};
    ++asker.changes_now;
    CHECK(is<Stay>(asker.decides()));
    CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{.fresh = false}));
  }
}

TEST_CASE("who waits behind somebody does not ask for locks") {
  Asker asker = behind_one();
  asker.looks();
  CHECK(is<Stay>(asker.decides()));
  CHECK(is<AskNames>(asker.tell(LeftGate{Stayed{}})));
}

TEST_CASE("the first in the queue asks for locks where devices are free and too few") {
  Asker asker(patient());
  Request two;
  two.count = 2;
  State state = begun(two, patient());
  const Ledger leased = books({lease(1, uuid_of(0))});
  state = next(state, {0ms, Looked{machine(2), leased, {leased, 1}}}).state;
  Ledger ledger = leased;
  ledger.tickets.push_back(waiter(kMe));
  const Judgement judged = decide(state, {ledger, TicketId{kMe}, {}, 1});
  CHECK(is<Stay>(judged.decision));
  CHECK(next(judged.state, {0ms, LeftGate{Stayed{}}}).action == Action(Look{true}));
}

}  // namespace
}  // namespace berth::acquisition::acquisition_test
