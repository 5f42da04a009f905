// The first request in the queue sleeps on its devices; and what a time limit does to a wait.
#include <doctest/doctest.h>

#include <utility>

#include "berth/queue/test/asker.h"

namespace berth::acquisition::first_in_queue_test {
namespace {

// First in the queue
// ----------------------------------------------------------------------------------------------

TEST_CASE(
    "the first in the queue sleeps on its devices, and on the leases that it could be given something of") {
  Asker asker = with_all_leased(patient());
  asker.leases.push_back(lease(3, "GPU-of-no-interest"));
  const auto sleep = asker.sleeps_long();
  CHECK(sleep.uuids == std::vector<std::string>{uuid_of(0), uuid_of(1)});
  CHECK(sleep.leases == std::vector<TicketId>{{1}, {2}});
  CHECK(sleep.processes.empty());
  CHECK(sleep.period == 5s);
  CHECK(asker.state().standing.position == 1);
  CHECK_FALSE(asker.state().standing.behind.has_value());
}

TEST_CASE("what it begins to watch is followed by a look, and that by a quiet moment and another look") {
  Asker asker = with_all_leased(patient());
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 20ms);
  CHECK(asker.tell(Woken::not_asleep) == Action(Look{false}));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 20ms);
  CHECK(asker.tell(Woken::tick) == Action(Look{false}));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 5s);
}

TEST_CASE("after each long sleep another begins with a quiet moment") {
  Asker asker = with_all_leased(patient());
  asker.sleeps_long();
  CHECK(asker.tell(Woken::tick) == Action(Look{false}));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 20ms);
}

TEST_CASE("an event is followed by a look at once, one after a moment, and one after a quiet moment") {
  Asker asker = with_all_leased(patient());
  asker.sleeps_long();
  CHECK(asker.tell(Woken::changed) == Action(Look{false}));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 1ms);
  CHECK(asker.tell(Woken::tick) == Action(Look{false}));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 20ms);
  CHECK(asker.tell(Woken::tick) == Action(Look{false}));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 5s);
}

TEST_CASE("a moment that an event ends is not the quiet one before a long sleep") {
  Asker asker = with_all_leased(patient());
  asker.goes_on();
  asker.tell(Woken::not_asleep);
  asker.goes_on();
  asker.tell(Woken::changed);
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 20ms);
  asker.tell(Woken::tick);
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 5s);
}

TEST_CASE("who was behind somebody meanwhile begins with a quiet moment again") {
  Asker asker = with_all_leased(patient());
  asker.goes_on();
  asker.tell(Woken::not_asleep);
  asker.goes_on();
  asker.tell(Woken::tick);
  asker.earlier = {waiter(5)};
  CHECK(is<SleepBehind>(asker.goes_on()));
  asker.earlier.clear();
  asker.tell(Woken::changed);
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).period == 20ms);
}

TEST_CASE("what has no event is looked for: memory that comes back soon, readings less soon") {
  Asker asker = with_all_leased(patient());
  asker.leases = {lease(1, uuid_of(0))};
  SUBCASE("memory") {
    asker.facts.draining = {uuid_of(1)};
    CHECK(asker.sleeps_long().period == 250ms);
  }
  SUBCASE("a process that has ended, whose exit also rings") {
    Process ending;
    ending.pid = 812;
    ending.ending = true;
    asker.facts.snapshot.devices[1].processes = {ending};
    const SleepUntilReleased sleep = asker.sleeps_long();
    CHECK(sleep.period == 250ms);
    CHECK(sleep.processes == std::vector<std::uint32_t>{812});
  }
  SUBCASE("memory that nobody explains") {
    asker.facts.snapshot.devices[1].memory.used_bytes = 9 * kGiB;
    CHECK(asker.sleeps_long().period == 250ms);
  }
  SUBCASE("a reading") {
    Request cool;
    cool.conditions = {condition("temperature < 20C")};
    Asker other(patient());
    State state = begun(cool, patient());
    CHECK(state.request.conditions.size() == 1);
    const Ledger leased = books(asker.leases);
    state = next(state, {0ms, Looked{asker.facts, leased, {leased, 1}}}).state;
    Ledger ledger = leased;
    ledger.tickets.push_back(waiter(kMe));
    state = decide(state, {ledger, TicketId{kMe}, {}, 1}).state;
    state = next(state, {0ms, LeftGate{Stayed{}}}).state;
    state.quiet.next = NextSleep::whole;
    const Step step = next(state, {0ms, UsersNamed{}});
    REQUIRE(is<SleepUntilReleased>(step.action));
    CHECK(std::get<SleepUntilReleased>(step.action).period == 2s);
  }
}

TEST_CASE("what an original has locked, of which no event tells, is looked at every two seconds") {
  Asker asker(patient());
  asker.facts.locked_by_originals = {{uuid_of(0), "an original gpu_scheduler"}, {uuid_of(1), "/tmp/1"}};
  CHECK(asker.sleeps_long().period == 2s);
  REQUIRE(asker.state().standing.verdicts.size() == 2);
  CHECK(asker.state().standing.verdicts[0].reason == "locked by an original gpu_scheduler");
  asker.facts.locked_by_originals = {{uuid_of(0), "/tmp/0"}};
  asker.tell(Woken::tick);
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("the end of an outsider wakes it, but in the quiet moment, which one that has ended would end") {
  Asker asker(patient());
  for (Device& device : asker.facts.snapshot.devices) add_process(device, process(4711, kGiB));
  CHECK(std::get<SleepUntilReleased>(asker.goes_on()).processes.empty());
  CHECK(asker.sleeps_long().processes == std::vector<std::uint32_t>{4711, 4711});
}

// Time
// -------------------------------------------------------------------------------------------------

TEST_CASE("no sleep is longer than the time that is left, and after it one is refused") {
  Asker asker = behind_one_and_leases(patient_for(7s));
  CHECK(std::get<SleepBehind>(asker.goes_on()).period == 5s);
  asker.now = 5s;
  CHECK(std::get<SleepBehind>(asker.tell(Ticked{})).period == 2s);
  asker.now = 7s;
  CHECK(is<Look>(asker.tell(Ticked{})));
  CHECK(asker.goes_on() == Action(Refuse{}));
  CHECK(asker.state().standing.waited == 7s);
  CHECK(asker.state().standing.behind->id == TicketId{5});
}

TEST_CASE(
    "a wait that ran out behind somebody is refused with the reasons of its end, not of its beginning") {
  Asker asker = behind_one(patient_for(7s));
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  asker.goes_on();
  asker.now = 7s;
  asker.leases.pop_back();
  SUBCASE("behind whom it still stands") {
    CHECK(is<Look>(asker.tell(Ticked{})));
    CHECK(asker.goes_on() == Action(Refuse{}));
    CHECK(asker.state().standing.verdicts[0].failed == Clause::not_leased);
    CHECK(asker.state().standing.verdicts[1].free());
  }
  SUBCASE("and takes what is its own by then") {
    asker.earlier.clear();
    CHECK(is<Look>(asker.tell(Ticked{})));
    CHECK(asker.goes_on() == Action(Grant{}));
  }
}

TEST_CASE("a limit that passes during a look is noticed after it, and what is free by then is taken") {
  Asker asker = with_all_leased(patient_for(2s));
  CHECK(asker.sleeps_long().period == 2s);
  asker.tell(Woken::tick);
  asker.now = 9s;
  SUBCASE("nothing is free") {
    CHECK(asker.goes_on() == Action(Refuse{}));
    CHECK(asker.state().standing.waited == 9s);
  }
  SUBCASE("something is") {
    asker.leases.clear();
    CHECK(asker.goes_on() == Action(Grant{}));
  }
}

TEST_CASE("the limit of a wait counts from the begin of the request, whatever came before its join") {
  Asker asker = with_all_leased(patient_for(2s));
  asker.now = 1s;
  REQUIRE(asker.goes_on() ==
          Action(SleepUntilReleased{{uuid_of(0), uuid_of(1)}, {TicketId{1}, TicketId{2}}, {}, 20ms}));
  Asker late = with_all_leased(patient_for(2s));
  late.now = 2s;
  CHECK(late.goes_on() == Action(Refuse{}));
  CHECK(late.state().standing.waited == 0s);
}

TEST_CASE("the gate is waited for as long as the request may wait, and for a moment in any case") {
  CHECK(limit_at_gate(patient(), 1h) == std::nullopt);
  CHECK(limit_at_gate({}, 0s) == 2s);
  CHECK(limit_at_gate(patient_for(1min), 20s) == 40s);
  CHECK(limit_at_gate(patient_for(1min), 59s) == 2s);
  CHECK(limit_at_gate(patient_for(1min), 2min) == 2s);
}

TEST_CASE("without a limit it waits for ever") {
  Asker asker = behind_one_and_leases();
  asker.goes_on();
  asker.now = std::chrono::hours(24 * 365);
  CHECK(asker.tell(Ticked{}) == Action(without_session(SleepBehind{TicketId{5}, 5s, {TicketId{5}}})));
}

}  // namespace
}  // namespace berth::acquisition::first_in_queue_test
