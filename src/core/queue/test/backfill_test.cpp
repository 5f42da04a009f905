#include <doctest/doctest.h>

#include "berth/queue/test/asker.h"

// Who starts in front of an earlier rival, and who tells whom that it is his turn.
namespace berth::acquisition::backfill_test {
namespace {

Ticket wanting(std::uint64_t id, unsigned count, std::int64_t time_s = 0) {
  Ticket ticket = waiter(id);
  ticket.count = count;
  if (time_s > 0) ticket.time_s = time_s;
  return ticket;
}

Ticket lease_for(std::uint64_t id, unsigned device, std::int64_t time_s) {
  Ticket ticket = lease(id, uuid_of(device));
  ticket.time_s = time_s;
  ticket.granted_boot_s = 1;
  return ticket;
}

/// One GPU of two is leased for an hour, and the first in the queue wants both.
Asker one_free_and_kept(std::int64_t my_time_s, Patience patience = patient()) {
  Asker asker(patience);
  asker.facts.policy.queue.backfill = true;
  asker.leases = {lease_for(1, 0, 3600)};
  asker.earlier = {wanting(5, 2, 600)};
  asker.mine = wanting(kMe, 1, my_time_s);
  return asker;
}

std::vector<TicketId> ids(std::initializer_list<std::uint64_t> values) {
  std::vector<TicketId> tickets;
  for (const std::uint64_t value : values) tickets.push_back(TicketId{value});
  return tickets;
}

// Who starts

TEST_CASE("who ends before the reservation begins starts at once on what it leaves until then") {
  Asker asker = one_free_and_kept(3000);
  CHECK(asker.goes_on() == Action(Grant{}));
  CHECK(std::get<Granted>(asker.state().decision.plan).choice.uuids == std::vector{uuid_of(1)});
}

TEST_CASE("who takes longer sleeps, and can be rung") {
  Asker asker = one_free_and_kept(4000);
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{5}, 5s, {TicketId{5}}, {}, {}, true}));
  CHECK(std::get<Behind>(asker.state().decision.plan).in_the_way == ids({5}));
}

TEST_CASE("without backfill nobody starts in front of an earlier rival, and nobody rings") {
  Asker asker = one_free_and_kept(10);
  asker.facts.policy.queue.backfill = false;
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{5}, 5s, {TicketId{5}}}));
}

TEST_CASE("where what is kept for the first would be enough, all who came before are read") {
  Asker asker = one_free_and_kept(4000);
  asker.unread = 3;
  asker.looks();
  const auto decision = asker.decides();
  CHECK(decision == Decision(ReadOn{.all = true, .front = true}));
  asker.leases.push_back(lease_for(2, 1, 3600));
  CHECK(is<Stay>(asker.decides()));
}

TEST_CASE("where those who came first of all take what is free, nobody else is read") {
  Asker asker = one_free_and_kept(4000);
  asker.earlier = {wanting(2, 1, 600), wanting(6, 1, 600)};
  asker.unread = 900;
  asker.first_unread = TicketId{3};
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{6}, 5s, {TicketId{6}}, {}, {}, true}));
  CHECK(std::get<Behind>(asker.state().decision.plan).in_the_way == ids({2}));
}

TEST_CASE("nobody sleeps behind one of the first where nearer ones may wait") {
  Asker asker = one_free_and_kept(4000);
  asker.earlier = {wanting(2, 1, 600)};
  asker.unread = 900;
  asker.first_unread = TicketId{3};
  asker.looks();
  CHECK(asker.decides() == Decision(ReadOn{.all = true, .front = false}));
}

TEST_CASE("the reservation of one that is stopped is nobody's") {
  Asker asker = one_free_and_kept(4000);
  asker.stopped = {TicketId{5}};
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("a share fits beside the share that is kept for another") {
  Asker asker = one_free_and_kept(4000);
  const auto share = [](Ticket ticket, std::uint64_t promise_bytes) {
    ticket.shared = true;
    ticket.promise_bytes = promise_bytes;
    return ticket;
  };
  asker.leases = {};
  asker.earlier = {share(wanting(5, 1, 600), 30 * kGiB)};
  asker.earlier[0].candidates = {uuid_of(0)};
  asker.mine = share(wanting(kMe, 1, 600), 20 * kGiB);
  Request request = shared_request(20 * kGiB);
  request.order = Order::index;
  const auto planned = plan(asker.ledger(), asker.facts, request, TicketId{kMe});
  CHECK(std::get<Granted>(*planned).choice.uuids == std::vector{uuid_of(1)});
}

// Who rings

/// First in the queue for both of two GPUs, of which one is free, with others behind.
struct First {
  Asker asker{patient()};

  First() {
    asker.facts.policy.queue.backfill = true;
    asker.leases = {lease_for(1, 0, 3600)};
    asker.mine = wanting(kMe, 1, 600);
    asker.mine.candidates = {uuid_of(0)};
  }

  Ledger queue(std::vector<Ticket> later) {
    Ledger ledger = books(asker.leases);
    ledger.tickets.push_back(asker.mine);
    ledger.tickets.insert(ledger.tickets.end(), later.begin(), later.end());
    return ledger;
  }
};

TEST_CASE("whoever is first and cannot use what is free rings who can") {
  First first;
  CHECK(first.asker.goes_on() == Action(ReadQueue{}));
  const Ledger queue = first.queue({wanting(11, 2), wanting(12, 1), wanting(13, 1)});
  CHECK(first.asker.tell(QueueRead{queue}) == Action(Ring{{wanting(12, 1)}}));
  CHECK(is<SleepUntilReleased>(first.asker.tell(Rang{})));
}

TEST_CASE("who does not hear it because he is stopped is skipped") {
  First first;
  first.asker.goes_on();
  first.asker.tell(QueueRead{first.queue({wanting(12, 1), wanting(13, 1), wanting(14, 1)})});
  CHECK(first.asker.tell(Rang{{TicketId{12}}}) == Action(Ring{{wanting(13, 1)}}));
  CHECK(is<SleepUntilReleased>(first.asker.tell(Rang{})));
}

TEST_CASE("where nobody can use what is free, nobody is rung") {
  First first;
  first.asker.goes_on();
  CHECK(is<SleepUntilReleased>(first.asker.tell(QueueRead{first.queue({wanting(12, 3)})})));
}

TEST_CASE("conditions of its own keep nothing from anybody") {
  Request cool;
  cool.conditions = {condition("temp<=20")};
  Asker asker(patient(), cool);
  asker.facts.policy.queue.backfill = true;
  asker.leases = {lease_for(1, 0, 3600)};
  CHECK(asker.goes_on() == Action(ReadQueue{}));
  Ledger queue = asker.ledger();
  queue.tickets.push_back(wanting(12, 1));
  CHECK(asker.tell(QueueRead{queue}) == Action(Ring{{wanting(12, 1)}}));
}

TEST_CASE("where all is leased nobody reads the line") {
  First first;
  first.asker.leases.push_back(lease(2, uuid_of(1)));
  CHECK(is<SleepUntilReleased>(first.asker.goes_on()));
}

TEST_CASE("who has just joined behind somebody rings nobody") {
  Asker asker = one_free_and_kept(4000);
  CHECK(is<SleepBehind>(asker.goes_on()));
}

// Who is rung

TEST_CASE("who is rung looks, and again after a moment and after a quiet one") {
  Asker asker = one_free_and_kept(4000);
  asker.goes_on();
  CHECK(asker.tell(Woken::rung) == Action(Look{}));
  // It finds that it is not its turn, and that nobody else's it is.
  const auto goes_to_sleep = [&] {
    Action action = asker.goes_on();
    if (is<ReadQueue>(action)) action = asker.tell(QueueRead{asker.ledger()});
    return std::get<SleepBehind>(action).period;
  };
  CHECK(goes_to_sleep() == 1ms);
  CHECK(asker.tell(Ticked{}) == Action(Look{}));
  CHECK(goes_to_sleep() == 20ms);
  CHECK(asker.tell(Ticked{}) == Action(Look{}));
  asker.now = 1s;
  CHECK(goes_to_sleep() == 5s);
  // A device is free: it decides anew, and asks the driver nothing.
  CHECK(asker.tell(Ticked{}) == Action(EnterGate{}));
  CHECK(is<AskNames>(asker.passes_the_gate()));
  CHECK(goes_to_sleep() == 5s);
}

TEST_CASE("who is rung for nothing again and again listens less and less often") {
  Asker asker = one_free_and_kept(4000);
  asker.goes_on();
  int looks = 0;
  while (asker.now < 1min) {
    const auto* sleep = std::get_if<SleepBehind>(&asker.action);
    if (sleep == nullptr) {
      looks += is<Look>(asker.action) ? 1 : 0;
      if (is<ReadQueue>(asker.action))
        asker.tell(QueueRead{asker.ledger()});
      else
        asker.takes_a_step();
    } else if (sleep->bell) {
      asker.tell(Woken::rung);  // at once, whenever it listens
    } else {
      asker.now += sleep->period;
      asker.tell(Ticked{});
    }
  }
  CHECK(looks < 100);
  // After some quiet it hears at once again.
  asker.goes_on();
  asker.now += 20s;
  asker.tell(Ticked{});
  asker.goes_on();
  REQUIRE(is<SleepBehind>(asker.action));
  CHECK(std::get<SleepBehind>(asker.action).bell);
  CHECK(asker.state().listening.pause == 0ms);
}

TEST_CASE("when the one before it leaves, what was kept for that one is looked at anew") {
  Asker asker = one_free_and_kept(4000);
  asker.earlier = {wanting(4, 2, 600), wanting(5, 1, 4000)};
  asker.goes_on();
  asker.earlier.pop_back();
  CHECK(asker.tell(Woken::changed) == Action(EnterGate{}));
  CHECK(asker.passes_the_gate() == Action(Look{}));
  CHECK(asker.goes_on() == Action(ReadQueue{}));
}

TEST_CASE("a bell that was lost costs a tick") {
  Asker asker = one_free_and_kept(4000);
  SUBCASE("if a lease has ended") {
    asker.leases.push_back(lease_for(2, 1, 7200));
    asker.goes_on();
    asker.leases.erase(asker.leases.begin());
    asker.earlier[0] = wanting(5, 1, 600);
    asker.earlier[0].candidates = {uuid_of(1)};
    CHECK(asker.tell(Ticked{{}, false, true}) == Action(EnterGate{}));
  }
  SUBCASE("if one who waited for what is free has left") {
    asker.goes_on();
    asker.earlier[0] = wanting(6, 1, 600);
    asker.earlier[0].candidates = {uuid_of(0)};
    CHECK(asker.tell(Ticked{}) == Action(EnterGate{}));
  }
  CHECK(asker.passes_the_gate() == Action(Look{}));
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("whoever has many before it finds its turn at its tick as well") {
  Asker asker = one_free_and_kept(4000);
  asker.far_back = true;
  asker.goes_on();
  asker.earlier[0].candidates = {uuid_of(0)};
  CHECK(asker.tell(Ticked{{}, true, true}) == Action(EnterGate{}));
  CHECK(asker.passes_the_gate() == Action(Look{}));
}

TEST_CASE("a tick that finds nothing new asks the driver nothing") {
  Asker asker = one_free_and_kept(4000);
  asker.goes_on();
  for (int tick = 0; tick < 3; ++tick) {
    CHECK(asker.tell(Ticked{}) == Action(EnterGate{}));
    CHECK(is<AskNames>(asker.passes_the_gate()));
    CHECK(is<SleepBehind>(asker.is_told_the_names()));
  }
  asker.leases.push_back(lease_for(2, 1, 3600));
  asker.tell(Ticked{{}, false, true});
  CHECK(is<SleepBehind>(asker.goes_on()));
  CHECK(is<SleepBehind>(asker.tell(Ticked{})));
}

TEST_CASE("a device that the one before does not wait for is looked after by who does") {
  Asker asker(patient());
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  asker.earlier = {waiter(5)};
  asker.earlier[0].candidates = {uuid_of(0)};
  CHECK(asker.goes_on() == Action(SleepBehind{TicketId{5}, 5s, {TicketId{5}}, {uuid_of(1)}, {TicketId{2}}}));
  asker.leases.pop_back();
  CHECK(asker.tell(Woken::rung) == Action(Look{}));
  CHECK(asker.goes_on() == Action(Grant{}));
}

TEST_CASE("where no events are to be had, leases that have changed make it look") {
  Asker asker(patient());
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  asker.earlier = {waiter(5)};
  asker.earlier[0].candidates = {uuid_of(0)};
  asker.goes_on();
  CHECK(asker.tell(Ticked{{}, false, true}) == Action(Look{}));
}

}  // namespace
}  // namespace berth::acquisition::backfill_test
