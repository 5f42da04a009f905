#include <doctest/doctest.h>

#include <utility>

#include "berth/queue/test/asker.h"

namespace berth::acquisition::acquisition_test {
namespace {

SleepBehind without_session(SleepBehind sleep) {
  sleep.ends_session = true;
  return sleep;
}

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
  CHECK(asker.tell(Named{}) == Action(Refuse{}));
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
  step = next(step.state, {0ms, Named{{{0, "bob"}}}});
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
  CHECK(asker.tell(Named{{{0, "root"}}}) == Action(Refuse{}));
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
  CHECK(asker.looks() == Action(Decide{}));
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

TEST_CASE("a device is never granted by old facts, however often they were read") {
  Asker asker;
  for (int look = 1; look <= 20; ++look) {
    asker.looks();
    asker.changes_now = ++asker.changes_before;
    --asker.changes_before;
    REQUIRE(is<Stay>(asker.decides()));
    REQUIRE(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
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
  CHECK(asker.looks() == Action(Decide{}));
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
  asker.tell(Woken::changed);
  asker.looks();
  CHECK(asker.passes_the_gate() == Action(Look{false, true}));
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

TEST_CASE("who waits behind somebody does not ask for locks") {
  Asker asker = behind_one();
  asker.looks();
  CHECK(is<Stay>(asker.decides()));
  CHECK(is<AskNames>(asker.tell(LeftGate{Stayed{}})));
}

TEST_CASE("the first in line asks for locks where devices are free and too few") {
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
  asker.mine.fair_number = 1;
  Ticket other = waiter(kMe + 2);
  other.uid = asker.mine.uid + 1;
  other.fair_number = 0;
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
  asker.mine.fair_number = 1;
  Ticket next = waiter(kMe + 1);
  next.uid = asker.mine.uid + 1;
  next.fair_number = 1;
  Ticket gives_up = waiter(kMe + 2);
  gives_up.uid = asker.mine.uid + 2;
  gives_up.fair_number = 0;
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
  CHECK(asker.tell(read) == Action(Ring{{next.id}}));
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
  CHECK(is<Look>(asker.tell(Ticked{.passed_over = {}, .leases_changed = true})));
  CHECK(is<SleepBehind>(asker.goes_on()));
  CHECK(is<Look>(asker.tell(Ticked{})));
  CHECK(is<SleepBehind>(asker.goes_on()));
  CHECK(asker.tell(Ticked{}) == Action(Join{asker.mine.candidates}));
  CHECK(is<Stay>(asker.decides()));
}

TEST_CASE("one that yields keeps its place behind who started between two ticks") {
  Asker asker = behind_a_later_one();
  const auto leases = std::exchange(asker.leases, {});
  CHECK(is<Look>(asker.tell(Ticked{.passed_over = {}, .leases_changed = true})));
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
  Asker asker = behind_one();
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

TEST_CASE("when the one before it is gone the next in line is asked for, and not the driver") {
  Asker asker = behind_one();
  asker.earlier = {waiter(4), waiter(5)};
  asker.goes_on();
  asker.earlier = {waiter(4)};
  CHECK(asker.tell(Woken::changed) == Action(Decide{}));
  CHECK(asker.passes_the_gate() == Action(AskNames{{1000}}));
  CHECK(asker.is_told_the_names() == Action(SleepBehind{TicketId{4}, 5s, {TicketId{4}}}));
}

TEST_CASE("when none is left before it, it looks, and nothing is taken by the old facts") {
  Asker asker = behind_one();
  asker.goes_on();
  asker.earlier.clear();
  CHECK(asker.tell(Woken::changed) == Action(Decide{}));
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false}));
  CHECK(asker.looks() == Action(Decide{}));
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

TEST_CASE("a rival that is stopped is passed over") {
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
  Asker asker = behind_one();
  asker.goes_on();
  CHECK(is<SleepBehind>(asker.tell(Ticked{})));
  CHECK(asker.tell(Ticked{{TicketId{5}}}) == Action(Decide{}));
  asker.stopped = {TicketId{5}};
  CHECK(asker.passes_the_gate() == Action(Look{false}));
}

TEST_CASE("behind one that was passed over sleeps who must, and watches both") {
  Asker asker = behind_one();
  asker.earlier = {waiter(4), waiter(5)};
  asker.stopped = {TicketId{5}};
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{4}, 5s, {TicketId{4}, TicketId{5}}}));
  CHECK(asker.state().standing.position == 2);
  CHECK(is<SleepBehind>(asker.tell(Ticked{{TicketId{5}}})));
  // It goes on.
  CHECK(asker.tell(Ticked{}) == Action(Decide{}));
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
  CHECK(asker.tell(Ticked{{TicketId{5}}}) == Action(Decide{}));
  asker.earlier[0].held_back = true;
  CHECK(asker.passes_the_gate() == Action(Look{false}));
  asker.looks();
  CHECK(is<Take>(asker.decides()));
}

// First in the queue
// ----------------------------------------------------------------------------------------------

TEST_CASE("the first in line sleeps on its devices, and on the leases that it could be given something of") {
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
    const Step step = next(state, {0ms, Named{}});
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
  Asker asker = behind_one(patient_for(7s));
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
  Asker asker = behind_one();
  asker.goes_on();
  asker.now = std::chrono::hours(24 * 365);
  CHECK(asker.tell(Ticked{}) == Action(without_session(SleepBehind{TicketId{5}, 5s, {TicketId{5}}})));
}

}  // namespace
}  // namespace berth::acquisition::acquisition_test
