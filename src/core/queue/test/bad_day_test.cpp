// The driver fails, or all devices are lost, while a request waits.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "berth/queue/test/asker.h"

namespace berth::acquisition::bad_day_test {
namespace {

constexpr auto kTick = 5s;
const Error kMismatch{ErrorCode::no_driver, "driver and library versions differ"};

Facts with_states(DeviceState first, DeviceState second) {
  Facts facts = machine(2);
  facts.snapshot.devices[0].state = first;
  facts.snapshot.devices[1].state = second;
  return facts;
}

Asker first_in_queue(Patience patience = patient()) {
  Asker asker = with_all_leased(patience);
  asker.sleeps_long();
  asker.leases.clear();
  asker.tell(Woken::changed);
  return asker;
}

SleepUntilReleased until_it_works(milliseconds period) {
  return {{uuid_of(0), uuid_of(1)}, {}, {}, period};
}

TEST_CASE("a driver that fails, in whatever way, is a reason to wait for who waits, and told") {
  struct Row {
    const char* what;
    Event happens;
  };
  const Ledger none;
  for (Row& row : std::vector<Row>{
           {"the driver fails", LookFailed{kMismatch, true}},
           {"the probe crashes", LookFailed{{ErrorCode::failure, "signal 11"}, true}},
           {"all devices are lost", Looked{with_states(DeviceState::lost, DeviceState::lost), none, {}}},
           {"there is no device", Looked{machine(0), none, {}}},
           {"none responds",
            Looked{with_states(DeviceState::unresponsive, DeviceState::unresponsive), none, {}}}}) {
    CAPTURE(row.what);
    Asker asker = first_in_queue();
    CHECK(asker.tell(std::move(row.happens)) == Action(until_it_works(kTick)));
    CHECK_FALSE(asker.state().standing.hindrance.empty());
    CHECK(asker.tell(Woken::tick) == Action(Look{false, true}));
    CHECK(asker.goes_on() == Action(Grant{}));
    CHECK(asker.state().standing.hindrance.empty());
  }
}

TEST_CASE("what is not the driver's ends the wait as before") {
  const Error of_store{ErrorCode::failure, "the lease directory is gone"};
  Asker asker = first_in_queue();
  CHECK(asker.tell(LookFailed{of_store}) == Action(Fail{of_store}));
  Asker gone = first_in_queue();
  gone.facts.within.emplace();
  CHECK(gone.goes_on() == Action(Refuse{}));
}

TEST_CASE("who waits for what an admin takes out waits on, lets others pass at once, and is told why") {
  Asker asker = first_in_queue();
  asker.facts.policy.excluded = {{"0", "its fan: back in an hour"}, {"1", "its fan: back in an hour"}};
  CHECK(asker.looks() == Action(EnterGate{}));
  CHECK(std::get<Stay>(*asker.decides()).held_back == true);
  asker.tell(LeftGate{Stayed{}});
  CHECK(asker.goes_on() == Action(until_it_works(kTick)));
  CHECK(asker.state().standing.hindrance.ends_with("excluded by the site: its fan: back in an hour"));
  asker.tell(Woken::tick);
  CHECK(asker.goes_on() == Action(until_it_works(kTick)));
  asker.facts.policy.excluded = {};
  asker.tell(Woken::tick);
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("who waits only for what was taken out asks the driver when that changes, and once a minute") {
  Asker asker = first_in_queue();
  asker.facts.policy.excluded = {{"0", "its fan"}, {"1", "its fan"}};
  asker.now = 1s;
  CHECK(asker.goes_on() == Action(until_it_works(kTick)));
  const Action if_news = Look{false, true, true};
  for (const Woken woken : {Woken::tick, Woken::changed, Woken::not_asleep}) {
    CHECK(asker.tell(woken) == if_news);
    CHECK(asker.tell(NoNews{}) == Action(until_it_works(kTick)));
    CHECK(asker.state().standing.hindrance.ends_with("excluded by the site: its fan"));
  }
  asker.now = 61s;
  CHECK(asker.tell(Woken::tick) == if_news);
  CHECK(asker.tell(NoNews{}) == Action(Look{false, true}));
  CHECK(asker.looks() == Action(until_it_works(kTick)));
  SUBCASE("it is lost too") {
    asker.facts.snapshot.devices[0].state = DeviceState::lost;
    CHECK(asker.tell(Woken::tick) == if_news);
    CHECK(asker.looks() == Action(until_it_works(kTick)));
    CHECK(asker.tell(Woken::tick) == Action(Look{false, true}));
  }
  SUBCASE("it is taken in") {
    asker.facts.policy.excluded = {};
    CHECK(asker.tell(Woken::tick) == if_news);
    CHECK(asker.goes_on() == Action(Grant{}));
  }
}

TEST_CASE("a wait that runs out while there is no news of what was taken out says why") {
  Asker asker = first_in_queue(patient_for(7s));
  asker.facts.policy.excluded = {{"0", "its fan"}, {"1", "its fan"}};
  asker.now = 5s;
  CHECK(asker.goes_on() == Action(until_it_works(2s)));
  asker.now = 7s;
  asker.tell(Woken::tick);
  const Action ended = asker.tell(NoNews{});
  REQUIRE(is<Fail>(ended));
  CHECK(std::get<Fail>(ended).error.code == ErrorCode::timed_out);
  CHECK(std::get<Fail>(ended).error.message.ends_with("excluded by the site: its fan"));
}

TEST_CASE("what is taken out and what is lost count together, and only for who waits") {
  Request two;
  two.count = 2;
  Facts facts = with_states(DeviceState::lost, DeviceState::ok);
  facts.policy.excluded = {{"1", "its fan"}};
  Asker asker(patient(), two);
  asker.leases = {lease(1, uuid_of(0))};
  asker.sleeps_long();
  asker.tell(Woken::changed);
  asker.facts = facts;
  CHECK(asker.goes_on() == Action(until_it_works(kTick)));
  for (const Patience& patience : {Patience{}, patient()}) {
    Asker joins(patience);
    joins.facts = facts;
    CHECK(joins.goes_on() == Action(Refuse{}));
  }
}

TEST_CASE("who waits for two devices of which one is lost waits on, and who waits for one of them has it") {
  Request two;
  two.count = 2;
  Asker asker(patient(), two);
  asker.leases = {lease(1, uuid_of(0))};
  asker.sleeps_long();
  asker.tell(Woken::changed);
  const Facts working = asker.facts;
  asker.facts = with_states(DeviceState::lost, DeviceState::ok);
  CHECK(asker.goes_on() == Action(until_it_works(kTick)));
  Asker one = first_in_queue();
  one.facts = asker.facts;
  CHECK(one.goes_on() == Action(Grant{}));
  Asker joins(patient(), two);
  joins.facts = asker.facts;
  CHECK_FALSE(is<Join>(joins.looks()));
  asker.facts = working;
  asker.leases.clear();
  asker.tell(Woken::tick);
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("who joins, or does not wait, is refused by a driver that fails") {
  for (const Patience& patience : {Patience{}, patient()}) {
    Asker asker(patience);
    CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(Fail{kMismatch}));
  }
  Asker second_look = with_all_leased({});
  second_look.looks();
  second_look.leases = {lease(1, uuid_of(0)), lease(3, uuid_of(1))};
  second_look.passes_the_gate();
  CHECK(second_look.tell(LookFailed{kMismatch, true}) == Action(Fail{kMismatch}));
}

TEST_CASE("one that gave way waits for the driver before it joins again") {
  Patience again = patient();
  again.is_requeued = true;
  Asker asker(again);
  CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(Pause{kTick}));
  CHECK(asker.tell(Paused{}) == Action(Look{false, true}));
  CHECK(is<Join>(asker.looks()));
}

TEST_CASE("what was accepted earlier waits through a bad day also if it has not joined yet") {
  for (const bool was_accepted : {true, false}) {
    Patience patience = patient();
    patience.was_accepted = was_accepted;
    Asker asker(patience);
    asker.facts.policy.excluded = {{"0", "its fan"}, {"1", "its fan"}};
    CHECK(asker.goes_on() == (was_accepted ? Action(Pause{kTick}) : Action(Refuse{})));
    if (!was_accepted) continue;
    asker.facts.policy.excluded = {};
    asker.tell(Paused{});
    CHECK(is<Join>(asker.looks()));
  }
}

TEST_CASE("who stands behind somebody needs no driver, and sleeps on") {
  Asker asker = behind_one();
  asker.goes_on();
  asker.tell(Woken::rung);
  CHECK(is<SleepBehind>(asker.tell(LookFailed{kMismatch, true})));
  CHECK(asker.state().standing.hindrance.empty());
}

TEST_CASE("a driver that fails for one alone keeps the others waiting for a minute") {
  Asker asker = first_in_queue();
  asker.now = 10s;
  asker.tell(LookFailed{kMismatch, true});
  asker.now = 69s;
  asker.tell(Woken::tick);
  CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(until_it_works(kTick)));
  asker.now = 70s;
  asker.tell(Woken::tick);
  CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(EnterGate{}));
  // Although the devices were free when the driver last worked.
  CHECK(asker.decides() == Decision(Stay{true}));
  asker.tell(LeftGate{Stayed{}});
  CHECK(asker.goes_on() == Action(until_it_works(kTick)));
  asker.tell(Woken::tick);
  CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(until_it_works(kTick)));
  asker.tell(Woken::tick);
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("a wait that runs out while the driver fails says so") {
  Asker asker = first_in_queue(patient_for(7s));
  asker.now = 5s;
  CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(until_it_works(2s)));
  asker.now = 9s;  // a machine under load comes late
  asker.tell(Woken::tick);
  CHECK(asker.tell(LookFailed{kMismatch, true}) ==
        Action(Fail{{ErrorCode::timed_out, "gave up after 7 s: driver and library versions differ"}}));
}

TEST_CASE("whoever has slept is granted a device only by a driver that was loaded anew") {
  Asker asker = first_in_queue();
  CHECK(asker.action == Action(Look{false, false}));
  asker.now = 1s;
  asker.looks();
  CHECK(is<Stay>(asker.decides()));
  CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false, true}));
  SUBCASE("which agrees") {
    CHECK(asker.goes_on() == Action(Grant{}));
  }
  SUBCASE("which fails") {
    CHECK(asker.tell(LookFailed{kMismatch, true}) == Action(until_it_works(kTick)));
  }
}

TEST_CASE("whoever is woken by the end of a lease asks a driver that is loaded anew, and asks once") {
  Request request;
  SUBCASE("the end of one lease is enough") {
    Asker asker(patient(), request);
    asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
    asker.sleeps_long();
    asker.leases.pop_back();
    asker.now = 1s;
    CHECK(asker.tell(Woken::changed) == Action(Look{false, true}));
    asker.looks();
    CHECK(is<Take>(asker.decides()));
  }
  SUBCASE("its session is young") {
    Asker asker(patient(), request);
    asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
    asker.sleeps_long();
    asker.now = 999ms;
    CHECK(asker.tell(Woken::changed) == Action(Look{false, false}));
  }
  SUBCASE("nothing has happened") {
    Asker asker(patient(), request);
    asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
    asker.sleeps_long();
    asker.now = 5s;
    CHECK(asker.tell(Woken::tick) == Action(Look{false, false}));
  }
  SUBCASE("after the end of one lease it waits for another") {
    request.count = 2;
    Asker asker(patient(), request);
    asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
    asker.sleeps_long();
    asker.leases.pop_back();
    asker.now = 1s;
    CHECK(asker.tell(Woken::changed) == Action(Look{false, false}));
    // And then the second one is the last.
    asker.goes_on();
    asker.leases.clear();
    asker.now = 3s;
    CHECK(asker.tell(Woken::changed) == Action(Look{false, true}));
    CHECK(asker.goes_on() == Action(Grant{}));
  }
}

TEST_CASE("whoever has slept for a moment is granted a device by the driver as it was loaded") {
  Asker asker = first_in_queue();
  asker.now = 999ms;
  asker.looks();
  CHECK(is<Take>(asker.decides()));
}

TEST_CASE("whoever slept behind somebody has no old driver") {
  Asker asker = behind_one();
  const auto is_served = [&] {
    asker.earlier.clear();
    asker.tell(Woken::changed);
    asker.passes_the_gate();
    CHECK(asker.action == Action(Look{false, false}));
    asker.looks();
    return is<Take>(asker.decides());
  };
  CHECK_FALSE(std::get<SleepBehind>(asker.goes_on()).ends_session);
  SUBCASE("it was for a moment") {
    asker.now = 999ms;
    CHECK(is_served());
  }
  SUBCASE("it was for longer, and no tick has ended the session") {
    asker.now = 1s;
    CHECK_FALSE(is_served());
    CHECK(asker.tell(LeftGate{Stayed{}}) == Action(Look{false, true}));
    CHECK(asker.goes_on() == Action(Grant{}));
  }
  SUBCASE("a tick has ended the session") {
    asker.now = kTick;
    asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
    asker.tell(Ticked{});
    CHECK(std::get<SleepBehind>(asker.goes_on()).ends_session);
    asker.leases.clear();
    asker.now = 2 * kTick;
    CHECK(is_served());
  }
}

}  // namespace
}  // namespace berth::acquisition::bad_day_test
