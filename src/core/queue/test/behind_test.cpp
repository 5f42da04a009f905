// A request sleeps behind a rival, or passes one that is stopped or held back.
#include <doctest/doctest.h>

#include <utility>

#include "berth/queue/test/asker.h"

namespace berth::acquisition::behind_test {
namespace {

// Behind somebody
// --------------------------------------------------------------------------------------------

TEST_CASE("who stands behind a rival sleeps until that no longer waits, and looks up now and then") {
  Asker asker = behind_one();
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{5}, 5s, {TicketId{5}}}));
  CHECK(asker.state().standing.position == 2);
  CHECK(asker.state().standing.behind->user == "bob");
}

TEST_CASE("in the fair order whoever came first looks after the devices, and looks at each tick") {
  Asker asker(patient());
  asker.facts.policy.queue.order = QueueOrder::fair;
  asker.leases = {lease(1, uuid_of(0))};
  asker.leases[0].uid = asker.mine.uid;
  asker.mine.number = fair(1);
  Ticket other = waiter(kMe + 2);
  other.uid = asker.mine.uid + 1;
  other.number = fair(0);
  other.count = 2;
  asker.earlier = {other};
  asker.facts.policy.queue.backfill = false;
  CHECK(asker.goes_on() ==
        Action(SleepBehind{other.id, 5s, {other.id}, asker.mine.candidates, {TicketId{1}}, true}));
  CHECK(is<Look>(asker.tell(Ticked{})));
}

TEST_CASE("in the fair order whoever came first rings whose turn it is now that another has given up") {
  Asker asker(patient());
  asker.facts = machine(2);
  asker.facts.policy.queue.order = QueueOrder::fair;
  asker.leases = {lease(1, uuid_of(0))};
  asker.leases[0].uid = asker.mine.uid;
  asker.mine.number = fair(1);
  Ticket next = waiter(kMe + 1);
  next.uid = asker.mine.uid + 1;
  next.number = fair(1);
  Ticket gives_up = waiter(kMe + 2);
  gives_up.uid = asker.mine.uid + 2;
  gives_up.number = fair(0);
  gives_up.count = 2;
  asker.earlier = {next, gives_up};
  asker.facts.policy.queue.backfill = false;
  CHECK(is<SleepBehind>(asker.goes_on()));
  QueueRead read;
  SUBCASE("it has left") {
    asker.earlier = {next};
  }
  SUBCASE("it is stopped") {
    read.stopped = {gives_up.id};
  }
  CHECK(is<Look>(asker.tell(Ticked{})));
  CHECK(asker.goes_on() == Action(ReadQueue{true}));
  read.ledger = asker.ledger();
  CHECK(asker.tell(read) == Action(Ring{{next}}));
}

// All is leased.
Asker behind_a_later_one() {
  Asker asker = with_all_leased(patient());
  asker.mine.yield_s = 30;
  asker.earlier = {waiter(kMe + 1)};
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{kMe + 1}, 5s, {TicketId{kMe + 1}}}));
  return asker;
}

TEST_CASE("one that yields stands behind who came later, and keeps its place while he waits as well") {
  Asker asker = behind_a_later_one();
  for (int tick = 0; tick < 3; ++tick) CHECK(is<SleepBehind>(asker.tell(Ticked{})));
}

TEST_CASE("one that yields joins anew behind who came later, could start and does not") {
  Asker asker = behind_a_later_one();
  asker.leases.clear();
  CHECK(is<Look>(asker.tell(Ticked{.skipped = {}, .leases_changed = true})));
  CHECK(is<SleepBehind>(asker.goes_on()));
  asker.now = 5s;
  CHECK(is<Look>(asker.tell(Ticked{})));
  CHECK(is<SleepBehind>(asker.goes_on()));
  asker.now = 10s;
  CHECK(asker.tell(Ticked{}) == Action(Join{asker.mine.candidates}));
  CHECK(is<Stay>(asker.decides()));
}

TEST_CASE("one that yields keeps its place behind who started between two ticks") {
  Asker asker = behind_a_later_one();
  const auto leases = std::exchange(asker.leases, {});
  CHECK(is<Look>(asker.tell(Ticked{.skipped = {}, .leases_changed = true})));
  asker.goes_on();
  CHECK(is<Look>(asker.tell(Ticked{})));
  asker.leases = leases;
  asker.goes_on();
  CHECK(is<SleepBehind>(asker.tell(Ticked{})));
}

TEST_CASE("who waits tells the holders of leases that yield") {
  Asker asker = behind_one();
  for (Ticket& lease : asker.leases) lease.yield_s = 30;
  const auto asked = [&] { return std::get<SleepBehind>(asker.goes_on()).asked; };
  SUBCASE("all that hold what it could have") {
    CHECK(asked().size() == asker.leases.size());
  }
  SUBCASE("but none that is ending already") {
    for (Ticket& lease : asker.leases) lease.ending = true;
    CHECK(asked().empty());
  }
}

TEST_CASE("who stands far back looks up less often") {
  Asker asker = behind_one_and_leases();
  asker.far_back = true;
  CHECK(asker.goes_on() == Action(without_session(SleepBehind{TicketId{5}, 30s, {TicketId{5}}})));
  CHECK(asker.tell(Ticked{{}, true}) ==
        Action(without_session(SleepBehind{TicketId{5}, 30s, {TicketId{5}}})));
  CHECK(asker.tell(Ticked{{}, false}) ==
        Action(without_session(SleepBehind{TicketId{5}, 5s, {TicketId{5}}})));
}

TEST_CASE("those further ahead that nobody has read count in the position, and are not read") {
  Asker asker = behind_one();
  asker.unread = 900;
  asker.goes_on();
  CHECK(asker.state().standing.position == 902);
}

TEST_CASE("who would take something reads on first") {
  Asker asker(patient());
  asker.unread = 3;
  asker.looks();
  CHECK(is<ReadOn>(asker.decides()));
  asker.unread = 0;
  CHECK(is<Take>(asker.decides()));
}

TEST_CASE("who finds nobody before it reads on before it believes that it is first") {
  Asker asker = with_all_leased(patient());
  asker.unread = 3;
  asker.looks();
  CHECK(is<ReadOn>(asker.decides()));
  asker.unread = 0;
  asker.earlier = {waiter(3)};
  CHECK(is<Stay>(asker.decides()));
  asker.tell(LeftGate{Stayed{}});
  CHECK(is<SleepBehind>(asker.is_told_the_names()));
}

TEST_CASE("when the one before it is gone the next in the queue is asked for, and not the driver") {
  Asker asker = behind_one();
  asker.earlier = {waiter(4), waiter(5)};
  asker.goes_on();
  asker.earlier = {waiter(4)};
  CHECK(asker.tell(Woken::changed) == Action(EnterGate{}));
  CHECK(asker.passes_the_gate() == Action(AskNames{{1000}}));
  CHECK(asker.is_told_the_names() == Action(SleepBehind{TicketId{4}, 5s, {TicketId{4}}}));
}

TEST_CASE("when none is left before it, it looks, and nothing is taken by the old facts") {
  Asker asker = behind_one();
  asker.goes_on();
  asker.earlier.clear();
  CHECK(asker.tell(Woken::changed) == Action(EnterGate{}));
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
  CHECK(asker.looks() == Action(EnterGate{}));
  CHECK(is<Take>(asker.decides()));
}

TEST_CASE("whoever is left to be read is read also for the order alone") {
  Asker asker = behind_one();
  asker.goes_on();
  asker.earlier.clear();
  asker.unread = 2;
  asker.tell(Woken::changed);
  CHECK(is<ReadOn>(asker.decides()));
}

// Those that are stopped
// -------------------------------------------------------------------------------------

TEST_CASE("a rival that is stopped is skipped") {
  Asker asker = behind_one();
  asker.stopped = {TicketId{5}};
  asker.looks();
  CHECK(is<Take>(asker.decides()));
}

TEST_CASE("one that was stopped when it was looked at and goes on before the decision is not") {
  Asker asker = behind_one();
  asker.stopped = {TicketId{5}};
  asker.looks();
  CHECK(is<Take>(asker.decides()));
  asker.stopped = {};
  CHECK(is<Stay>(asker.decides()));
}

TEST_CASE("a rival that is stopped while one sleeps behind it makes a new order") {
  Asker asker = behind_one_and_leases();
  asker.goes_on();
  CHECK(is<SleepBehind>(asker.tell(Ticked{})));
  CHECK(asker.tell(Ticked{{TicketId{5}}}) == Action(EnterGate{}));
  asker.stopped = {TicketId{5}};
  CHECK(asker.passes_the_gate() == Action(Look{false}));
}

TEST_CASE("behind one that was skipped sleeps who must, and watches both") {
  Asker asker = behind_one_and_leases();
  asker.earlier = {waiter(4), waiter(5)};
  asker.stopped = {TicketId{5}};
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{4}, 5s, {TicketId{4}, TicketId{5}}}));
  CHECK(asker.state().standing.position == 2);
  CHECK(is<SleepBehind>(asker.tell(Ticked{{TicketId{5}}})));
  // It goes on.
  CHECK(asker.tell(Ticked{}) == Action(EnterGate{}));
  asker.stopped = {};
  asker.passes_the_gate();
  CHECK(asker.is_told_the_names() == Action(SleepBehind{TicketId{5}, 5s, {TicketId{5}}}));
  CHECK(asker.state().standing.position == 3);
}

// Those that their own conditions hold back
// -------------------------------------------------------------------------------------

TEST_CASE("a first that its own conditions hold back says so as long as they do") {
  Request request;
  request.conditions = {Expression::parse("temp<=20").value()};
  Asker asker(patient(), request);
  for (Device& device : asker.facts.snapshot.devices) device.temperature_c = 30;
  asker.looks();
  CHECK(std::get<Stay>(*asker.decides()).held_back == true);
  asker.tell(LeftGate{Stayed{}});
  asker.goes_on();
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  asker.tell(Woken::tick);
  asker.looks();
  CHECK(std::get<Stay>(*asker.decides()).held_back == false);
}

TEST_CASE("a rival that is held back while one sleeps behind it makes a new order") {
  Asker asker = behind_one();
  asker.goes_on();
  CHECK(asker.tell(Ticked{{TicketId{5}}}) == Action(EnterGate{}));
  asker.earlier[0].held_back = true;
  CHECK(asker.passes_the_gate() == Action(Look{false}));
  asker.looks();
  CHECK(is<Take>(asker.decides()));
}

}  // namespace
}  // namespace berth::acquisition::behind_test
