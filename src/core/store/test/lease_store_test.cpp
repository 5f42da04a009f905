// The contract of a store, as one suite for all of them. To put another store under core, write a
// Bench for it, which says how to open it, and add a row to `kStores`. What holds by files alone is
// in directory_store_test.cpp.

#include "berth/store/lease_store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <rapidcheck.h>
#include <sys/file.h>

#include <algorithm>

#include "berth/store/directory_store.h"
#include "berth/store/directory_ticket.h"
#include "berth/store/test/forked.h"
#include "berth/store/test/scratch_directory.h"
#include "property.h"

namespace berth::store::lease_store_test {
namespace {

using namespace std::chrono_literals;

/// A store that any number of clients can open.
class Bench {
 public:
  virtual ~Bench() = default;
  /// Whether a client in another process sees the same store. If not, none can die alone.
  virtual bool is_for_processes() const { return true; }
  virtual std::unique_ptr<LeaseStore> client() = 0;
  /// Locks a device that had a lease, and has no ticket.
  virtual void lock_as_a_stranger(const std::string& uuid) = 0;
};

class MemoryBench : public Bench {
 public:
  bool is_for_processes() const override { return false; }
  std::unique_ptr<LeaseStore> client() override { return std::make_unique<MemoryStore>(books_); }
  void lock_as_a_stranger(const std::string& uuid) override { books_->foreign_locks[uuid] = true; }

 private:
  std::shared_ptr<MemoryBooks> books_ = std::make_shared<MemoryBooks>();
};

class DirectoryBench : public Bench {
 public:
  std::unique_ptr<LeaseStore> client() override {
    auto opened = DirectoryStore::open({scratch_.path("leases"), DirectoryOrigin::environment});
    REQUIRE(opened.has_value());
    return std::move(*opened);
  }
  void lock_as_a_stranger(const std::string& uuid) override {
    stranger_ = sys::Descriptor(
        ::open(scratch_.path("leases/devices/" + device_file_name(uuid)).c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(stranger_.get(), LOCK_EX) == 0);
  }

 private:
  ScratchDirectory scratch_;
  sys::Descriptor stranger_;
};

using MakeBench = std::unique_ptr<Bench> (*)();
struct Row {
  const char* name;
  MakeBench make;
};
constexpr Row kStores[] = {
    {"memory", [] { return std::unique_ptr<Bench>(new MemoryBench); }},
    {"directory", [] { return std::unique_ptr<Bench>(new DirectoryBench); }},
};

template <class Body>
void for_each_store(Body body) {
  for (const Row& row : kStores) {
    SUBCASE(row.name) {
      auto bench = row.make();
      body(*bench);
    }
  }
}

Ticket draft(std::vector<std::string> candidates, bool shared = false) {
  Ticket ticket;
  ticket.taker.pid = 4711;
  ticket.count = 1;
  ticket.shared = shared;
  ticket.candidates = std::move(candidates);
  ticket.command = "python train.py";
  ticket.note = "sweep 3";
  return ticket;
}

Decide take(std::vector<std::string> uuids, bool whole = true) {
  return [uuids, whole](const Ledger&, TicketId) -> Result<Decision> {
    Take wanted{uuids, {}};
    for (const std::string& uuid : uuids) wanted.locks.push_back({uuid, whole});
    return Decision(wanted);
  };
}
/// Does not sleep on after a tick.
bool never() {
  return false;
}

Result<Decision> stay(const Ledger&, TicketId) {
  return Decision(Stay{});
}
Result<Decision> withdraw(const Ledger&, TicketId) {
  return Decision(Withdraw{});
}

std::unique_ptr<OwnTicket> granted(LeaseStore& store, std::vector<std::string> uuids, bool shared = false) {
  auto joined = store.join(draft(uuids, shared), take(uuids, !shared));
  REQUIRE(joined.has_value());
  REQUIRE(std::holds_alternative<Taken>(joined->outcome));
  return std::move(joined->own);
}

std::unique_ptr<OwnTicket> waiting(LeaseStore& store, std::vector<std::string> uuids) {
  auto joined = store.join(draft(std::move(uuids)), stay);
  REQUIRE(joined.has_value());
  REQUIRE(std::holds_alternative<Stayed>(joined->outcome));
  return std::move(joined->own);
}

/// Sees all that a decision can see.
Decide see_all(Ledger& seen) {
  return [&seen](const Ledger& ledger, TicketId) -> Result<Decision> {
    seen = ledger;
    return ledger.unread > 0 ? Decision(ReadOn{}) : Decision(Stay{});
  };
}

Ledger ledger_of(LeaseStore& store) {
  auto books = store.look();
  REQUIRE(books.has_value());
  return books->ledger;
}

/// One that has looked: before its first look, or join, the cheap questions find no store.
std::unique_ptr<LeaseStore> another_client(Bench& bench, LeaseStore& used) {
  waiting(used, {"GPU-a"})->release();
  auto client = bench.client();
  CHECK(ledger_of(*client) == Ledger{});
  return client;
}

TEST_CASE("a store that nobody has used is empty") {
  for_each_store([](Bench& bench) { CHECK(ledger_of(*bench.client()) == Ledger{}); });
}

TEST_CASE("a granted ticket is a lease that every client sees, with what its owner wrote") {
  for_each_store([](Bench& bench) {
    const auto mine = bench.client();
    const auto own = granted(*mine, {"GPU-a"});
    const Ledger seen = ledger_of(*bench.client());
    REQUIRE(seen.tickets.size() == 1);
    CHECK(seen.tickets[0].phase == TicketPhase::granted);
    CHECK(seen.tickets[0].devices == std::vector<std::string>{"GPU-a"});
    CHECK(seen.tickets[0].command == "python train.py");
    CHECK(seen.tickets[0].note == "sweep 3");
    CHECK(seen.tickets[0].id == own->ticket().id);
    CHECK(own->ticket().phase == TicketPhase::granted);
  });
}

TEST_CASE("a lease that becomes a waiting ticket again gives its devices to others and keeps its place") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    const TicketId id = own->ticket().id;
    const auto later = waiting(*store, {"GPU-a", "GPU-b"});
    const std::int64_t changes = store->lease_changes();
    REQUIRE(own->wait_again({"GPU-b"}, std::nullopt).has_value());
    CHECK(own->ticket().phase == TicketPhase::waiting);
    CHECK(store->lease_changes() != changes);
    const Ledger seen = ledger_of(*bench.client());
    REQUIRE(seen.tickets.size() == 2);
    CHECK(seen.odd.empty());
    CHECK(seen.tickets[0].id == id);
    CHECK(seen.tickets[0].phase == TicketPhase::waiting);
    CHECK(seen.tickets[0].devices.empty());
    CHECK(seen.tickets[0].candidates == std::vector<std::string>{"GPU-b"});
    CHECK_FALSE(seen.tickets[0].granted_boot_s);
    const auto other = granted(*bench.client(), {"GPU-a"});
    CHECK(std::holds_alternative<Taken>(own->decide(take({"GPU-b"})).value()));
    CHECK(own->ticket().id == id);
    CHECK(own->ticket().devices == std::vector<std::string>{"GPU-b"});
    own->release();
    CHECK(ledger_of(*store).tickets.size() == 2);
  });
}

TEST_CASE("a lock without a ticket is told by the name of the device's file, whatever the store") {
  for_each_store([](Bench& bench) {
    const std::string mig = "MIG-GPU-a/1/0";
    const auto store = bench.client();
    granted(*store, {mig})->release();
    bench.lock_as_a_stranger(mig);
    const auto locks = store->look(Extent::leases, store->see_locks())->foreign_locks;
    REQUIRE(locks.size() == 1);
    CHECK(locks[0].device_file == "MIG-GPU-a_1_0");
    CHECK(locks[0].whole);
  });
}

TEST_CASE("the decision sees the ticket that it decides for, waiting, and all before it if it asks") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto first = waiting(*store, {"GPU-a"});
    Ledger seen;
    auto joined = store->join(draft({"GPU-a"}), see_all(seen));
    REQUIRE(joined.has_value());
    const TicketId me = joined->own->ticket().id;
    REQUIRE(seen.tickets.size() == 2);
    CHECK(seen.tickets[0].id == first->ticket().id);
    CHECK(seen.tickets[1].id == me);
    CHECK(seen.tickets[1].phase == TicketPhase::waiting);
    CHECK(first->ticket().id < me);
  });
}

TEST_CASE("those before me are seen from the nearest on, and at last all of them") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    std::vector<std::unique_ptr<OwnTicket>> before;
    for (int count = 0; count < 40; ++count) before.push_back(waiting(*store, {"GPU-a"}));
    std::size_t seen = 0;
    auto joined = store->join(draft({"GPU-a"}), [&](const Ledger& ledger, TicketId) -> Result<Decision> {
      CHECK(ledger.tickets.size() >= seen + 1);
      seen = ledger.tickets.size() - 1;
      CHECK(seen + ledger.unread == before.size());
      for (std::size_t at = 0; at < seen; ++at)
        CHECK(ledger.tickets[at].id == before[ledger.unread + at]->ticket().id);
      return ledger.unread > 0 ? Decision(ReadOn{}) : Decision(Stay{});
    });
    REQUIRE(joined.has_value());
    CHECK(seen == before.size());
  });
}

TEST_CASE("those who came first of all are seen if they are asked for, without any between them") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    std::vector<std::unique_ptr<OwnTicket>> before;
    for (int count = 0; count < 40; ++count) before.push_back(waiting(*store, {"GPU-a"}));
    bool nearest = true;
    const auto look = [&](const Ledger& ledger, TicketId) -> Result<Decision> {
      CHECK(ledger.tickets.size() - 1 + ledger.unread == before.size());
      std::size_t first = 0;
      while (ledger.unread > 0 && before[first]->ticket().id < ledger.first_unread) ++first;
      for (std::size_t at = 0; at < first; ++at) CHECK(ledger.tickets[at].id == before[at]->ticket().id);
      return ledger.unread > 0 ? Decision(ReadOn{.all = true, .front = !std::exchange(nearest, false)})
                               : Decision(Stay{});
    };
    auto joined = store->join(draft({"GPU-a"}), look);
    REQUIRE(joined.has_value());
    before.erase(before.begin(), before.begin() + 3);
    CHECK(joined->own->decide(look).has_value());
  });
}

TEST_CASE("of those whom no decision has asked for yet only who still waits is decided on") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    auto first = waiting(*store, {"GPU-a"});
    const auto stopped = waiting(*store, {"GPU-a"});
    auto nearest = waiting(*store, {"GPU-a"});
    const auto me = waiting(*store, {"GPU-a"});
    REQUIRE(nearest->decide(take({"GPU-a"})).has_value());
    first.reset();
    Ledger seen;
    REQUIRE(me->decide(see_all(seen)).has_value());
    REQUIRE(seen.tickets.size() == 3);  // with the lease
    CHECK(find_ticket(seen, stopped->ticket().id)->phase == TicketPhase::waiting);
    CHECK(seen.unread == 0);
  });
}

TEST_CASE("a release ends the lease at once and frees the device") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a", "GPU-b"});
    own->release();
    CHECK(ledger_of(*store).tickets.empty());
    CHECK(granted(*store, {"GPU-b"}) != nullptr);
  });
}

TEST_CASE("the end of the object ends the ticket") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    granted(*store, {"GPU-a"}).reset();
    waiting(*store, {"GPU-a"}).reset();
    CHECK(ledger_of(*store) == Ledger{});
  });
}

TEST_CASE("a device that is leased is not given again, whatever the decision says") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    for (const bool whole : {true, false}) {
      auto second = bench.client()->join(draft({"GPU-a"}, !whole), take({"GPU-a"}, whole));
      REQUIRE(second.has_value());
      REQUIRE(std::holds_alternative<Conflict>(second->outcome));
      CHECK(std::get<Conflict>(second->outcome).uuid == "GPU-a");
      CHECK(second->own->ticket().phase == TicketPhase::waiting);
    }
  });
}

TEST_CASE("all or nothing: a set with one leased device takes none of the others") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-b"});
    auto second = store->join(draft({"GPU-a", "GPU-b"}), take({"GPU-a", "GPU-b"}));
    REQUIRE(std::holds_alternative<Conflict>(second->outcome));
    CHECK(granted(*store, {"GPU-a"}) != nullptr);
  });
}

TEST_CASE("parts of a device go to many, and never beside a whole lease") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto one = granted(*store, {"GPU-a"}, true);
    const auto two = granted(*store, {"GPU-a"}, true);
    CHECK(leases_on(ledger_of(*store), "GPU-a").size() == 2);
    auto whole = store->join(draft({"GPU-a"}), take({"GPU-a"}));
    CHECK(std::holds_alternative<Conflict>(whole->outcome));
    one->release();
    auto still = whole->own->decide(take({"GPU-a"}));
    CHECK(std::holds_alternative<Conflict>(*still));
    two->release();
    auto now = whole->own->decide(take({"GPU-a"}));
    CHECK(std::holds_alternative<Taken>(*now));
  });
}

TEST_CASE("a waiting ticket becomes a lease by a later decision and keeps its id") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = waiting(*store, {"GPU-a"});
    const TicketId id = own->ticket().id;
    const auto outcome = own->decide(take({"GPU-a"}));
    CHECK(std::holds_alternative<Taken>(*outcome));
    const Ledger ledger = ledger_of(*store);
    REQUIRE(ledger.tickets.size() == 1);
    CHECK(ledger.tickets[0].id == id);
    CHECK(ledger.tickets[0].phase == TicketPhase::granted);
  });
}

TEST_CASE("a lease that is made to yield says so, to others and to its holder when it reads again") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    const TicketId id = own->ticket().id;
    const auto other = bench.client();
    for (const std::optional<std::int64_t> yield_s :
         {std::optional<std::int64_t>(30), std::optional<std::int64_t>(), std::optional<std::int64_t>(60)}) {
      REQUIRE(store->set_yield(id, yield_s));
      CHECK(ledger_of(*other).tickets.front().yield_s == yield_s);
      own->read_again();
      CHECK(own->ticket().yield_s == yield_s);
    }
    own->release();
    CHECK(store->set_yield(id, 30).error().message.ends_with("has ended"));
    CHECK(store->set_words(id, "c", "n").error().message.ends_with("has ended"));
  });
}

TEST_CASE("a lease that is extended says another time, to others and to its holder when it reads again") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    const TicketId id = own->ticket().id;
    const auto other = bench.client();
    for (const std::int64_t time_s : {7200, 9000}) {
      const auto extended = other->extend(id, [&](const Ticket& lease) -> Result<std::int64_t> {
        CHECK(lease.devices == std::vector<std::string>{"GPU-a"});
        return time_s;
      });
      REQUIRE(extended);
      CHECK(ledger_of(*other).tickets.front().time_s == time_s);
      own->read_again();
      CHECK(own->ticket().time_s == time_s);
    }
    const auto refused =
        other->extend(id, [](const Ticket&) -> Result<std::int64_t> { return fail(ErrorCode::usage, "no"); });
    CHECK(refused.error().message == "no");
    CHECK(ledger_of(*other).tickets.front().time_s == 9000);
    own->release();
    const auto late = other->extend(id, [](const Ticket&) -> Result<std::int64_t> { return 1; });
    CHECK(late.error().message.ends_with("has ended"));
  });
}

TEST_CASE("who asks that a lease ends is in its ticket, for its holder when it reads again") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    const ReleaseCall call{0, 77, "the disk is full"};
    const auto other = bench.client();
    REQUIRE(other->note_release(own->ticket().id, call, std::nullopt));
    CHECK(ledger_of(*other).tickets.front().release == call);
    own->read_again();
    CHECK(own->ticket().release == call);
    const TicketId id = own->ticket().id;
    own->release();
    CHECK(other->note_release(id, call, std::nullopt).error().message.ends_with("has ended"));
  });
}

TEST_CASE("a ticket that withdraws is gone") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto at_once = store->join(draft({"GPU-a"}), withdraw);
    CHECK(at_once->own == nullptr);
    CHECK(std::holds_alternative<Withdrawn>(at_once->outcome));
    const auto later = waiting(*store, {"GPU-a"});
    CHECK(std::holds_alternative<Withdrawn>(*later->decide(withdraw)));
    CHECK(ledger_of(*store) == Ledger{});
  });
}

TEST_CASE("a decision that fails is the answer, and leaves no ticket behind") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto refuse = [](const Ledger&, TicketId) -> Result<Decision> {
      return fail(ErrorCode::usage, "no such device");
    };
    const auto joined = store->join(draft({"GPU-a"}), refuse);
    REQUIRE_FALSE(joined.has_value());
    CHECK(joined.error() == Error{ErrorCode::usage, "no such device"});
    CHECK(ledger_of(*store) == Ledger{});
    const auto waiter = waiting(*store, {"GPU-a"});
    CHECK_FALSE(waiter->decide(refuse).has_value());
    CHECK(ledger_of(*store) == Ledger{});
  });
}

TEST_CASE("a sleep behind a rival is over when it no longer waits, and after a tick while it does") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    auto first = waiting(*store, {"GPU-a"});
    const auto second = waiting(*store, {"GPU-a"});
    CHECK(second->sleep_behind(first->ticket().id, 5ms, never, {}) == Woken::tick);
    const auto granted_now = first->decide(take({"GPU-a"}));
    REQUIRE(granted_now.has_value());
    CHECK(second->sleep_behind(first->ticket().id, 1h, never, {}) == Woken::changed);
    first.reset();
    CHECK(second->sleep_behind(TicketId{1}, 1h, never, {}) == Woken::changed);
  });
}

TEST_CASE("of those before me only who still waits is decided on, wherever the others stood") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    auto first = waiting(*store, {"GPU-a"});
    const auto second = waiting(*store, {"GPU-a"});
    const auto me = waiting(*store, {"GPU-a"});
    const auto before_me = [&] {
      Ledger seen;
      REQUIRE(me->decide(see_all(seen)).has_value());
      std::vector<TicketId> ids;
      for (const Ticket& ticket : seen.tickets) {
        if (ticket.phase == TicketPhase::waiting && ticket.id < me->ticket().id) ids.push_back(ticket.id);
      }
      return ids;
    };
    CHECK(before_me() == std::vector{first->ticket().id, second->ticket().id});
    REQUIRE(first->decide(take({"GPU-a"})).has_value());
    CHECK(before_me() == std::vector{second->ticket().id});
  });
}

TEST_CASE("what is inside a lease is apart from what is outside") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto outer = granted(*store, {"GPU-a", "GPU-b"});
    auto inside = store->inside(outer->ticket().id);
    REQUIRE(inside.has_value());
    const auto inner = granted(**inside, {"GPU-a"});
    CHECK(ledger_of(**inside).tickets.size() == 1);
    CHECK(ledger_of(*store).tickets.size() == 1);
    auto again = store->inside(outer->ticket().id);
    auto second = (*again)->join(draft({"GPU-a"}), take({"GPU-a"}));
    CHECK(std::holds_alternative<Conflict>(second->outcome));
  });
}

TEST_CASE("ids tell the order of coming, whichever client came") {
  for_each_store([](Bench& bench) {
    const auto one = bench.client();
    const auto two = bench.client();
    const auto first = waiting(*one, {"GPU-a"});
    const auto second = waiting(*two, {"GPU-b"});
    const auto third = granted(*one, {"GPU-c"});
    CHECK(first->ticket().id < second->ticket().id);
    CHECK(second->ticket().id < third->ticket().id);
  });
}

TEST_CASE("the number of changes moves with a grant and with an end, and with no wait") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto other = another_client(bench, *store);
    const std::int64_t before = other->lease_changes();
    const auto waits = waiting(*store, {"GPU-a"});
    CHECK(other->lease_changes() == before);
    const auto own = granted(*store, {"GPU-b"});
    const std::int64_t with_lease = other->lease_changes();
    CHECK(with_lease != before);
    own->release();
    CHECK(other->lease_changes() != with_lease);
  });
}

TEST_CASE("a lease has ended for everybody once it was released, and nobody counts as waiting then") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto other = another_client(bench, *store);
    const auto own = granted(*store, {"GPU-a"});
    const TicketId id = own->ticket().id;
    CHECK_FALSE(other->has_ended(id));
    auto waits = waiting(*store, {"GPU-a"});
    CHECK(other->waiting_at_most() >= 1);
    own->release();
    CHECK(other->has_ended(id));
    waits.reset();
    CHECK(other->look()->ledger.tickets.empty());
  });
}

TEST_CASE("a ticket says that it is held back, until a decision finds otherwise or takes something") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto other = another_client(bench, *store);
    const auto own = waiting(*store, {"GPU-a"});
    const TicketId id = own->ticket().id;
    const auto held_back = [&](std::optional<bool> says) {
      REQUIRE(own->decide([&](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{says}); }));
      return other->is_held_back(id) && ledger_of(*other).tickets.front().held_back;
    };
    CHECK_FALSE(held_back({}));
    CHECK(held_back(true));
    CHECK(held_back({}));
    CHECK_FALSE(held_back(false));
    CHECK(held_back(true));
    REQUIRE(own->decide(take({"GPU-a"})).has_value());
    CHECK_FALSE(other->is_held_back(id));
    CHECK_FALSE(ledger_of(*other).tickets.front().held_back);
  });
}

TEST_CASE("what judging needs is read without the queue") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    const auto waits = waiting(*store, {"GPU-a"});
    const auto books = bench.client()->look(Extent::leases);
    REQUIRE(books.has_value());
    REQUIRE(books->ledger.tickets.size() == 1);
    CHECK(books->ledger.tickets[0].id == own->ticket().id);
  });
}

TEST_CASE("a sleep on devices ends when a lease on them does, and after a tick while it lives") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    const auto own = granted(*store, {"GPU-a"});
    const TicketId lease = own->ticket().id;
    const auto waits = waiting(*store, {"GPU-a"});
    const auto sleep = [&](std::chrono::milliseconds tick) {
      return waits->sleep_until_released({"GPU-a"}, {lease}, {}, tick);
    };
    // What was not watched before may have happened already.
    const auto first = sleep(5ms);
    CHECK((first == Woken::tick || first == Woken::not_asleep));
    CHECK(sleep(5ms) == Woken::tick);
    own->release();
    CHECK(sleep(1h) != Woken::tick);
    CHECK(std::holds_alternative<Taken>(waits->decide(take({"GPU-a"})).value()));
  });
}

TEST_CASE("what a store remembers of a run it tells to all") {
  for_each_store([](Bench& bench) {
    const auto store = bench.client();
    granted(*store, {"GPU-a"})->release();
    const PastRun run{77, 1, 2, Ending::badly, {"GPU-a"}};
    const bool remembers = store->note_outcome(run);
    const auto told = bench.client()->outcomes();
    CHECK(told.size() == (remembers ? 1 : 0));
    for (const UserRuns& each : told) CHECK(each.runs == std::vector{run});
  });
}

TEST_CASE("a client that is killed leaves no ticket, and its devices are free at once") {
  for_each_store([](Bench& bench) {
    if (!bench.is_for_processes()) return;
    Forked holder([&] { return granted(*bench.client().release(), {"GPU-a"}).release() != nullptr; });
    REQUIRE(holder.succeeded());
    const auto store = bench.client();
    const Ledger held = ledger_of(*store);
    REQUIRE(held.tickets.size() == 1);
    auto second = store->join(draft({"GPU-a"}), take({"GPU-a"}));
    CHECK(std::holds_alternative<Conflict>(second->outcome));
    holder.kill();
    CHECK(store->has_ended(held.tickets[0].id));
    CHECK(std::holds_alternative<Taken>(second->own->decide(take({"GPU-a"})).value()));
  });
}

TEST_CASE("who sleeps behind a client wakes when that one is killed") {
  for_each_store([](Bench& bench) {
    if (!bench.is_for_processes()) return;
    Forked rival([&] { return waiting(*bench.client().release(), {"GPU-a"}).release() != nullptr; });
    REQUIRE(rival.succeeded());
    const auto store = bench.client();
    const TicketId before = ledger_of(*store).tickets.at(0).id;
    const auto own = waiting(*store, {"GPU-a"});
    CHECK(own->sleep_behind(before, 5ms, never, {}) == Woken::tick);
    rival.kill();
    CHECK(own->sleep_behind(before, 1h, never, {}) == Woken::changed);
    CHECK(ledger_of(*store).tickets.size() == 1);
  });
}

TEST_CASE("no sequence of joins, decisions and ends gives a device to two, or loses one") {
  for (const Row& row : kStores) {
    CAPTURE(row.name);
    holds_for_any(fmt::format("conservation in the {} store", row.name), [&row] {
      const auto bench = row.make();
      const auto store = bench->client();
      const std::vector<std::string> devices{"GPU-a", "GPU-b", "GPU-c"};
      std::vector<std::unique_ptr<OwnTicket>> own;
      const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000));
      for (const int step : steps) {
        const std::string& uuid = devices[static_cast<std::size_t>(step) % devices.size()];
        const bool whole = step % 2 == 0;
        if (step % 3 == 0 && !own.empty()) {
          own.erase(own.begin() + step % static_cast<int>(own.size()));
        } else if (auto joined = store->join(draft({uuid}, !whole), take({uuid}, whole)); joined) {
          if (std::holds_alternative<Taken>(joined->outcome)) own.push_back(std::move(joined->own));
        }
        const Ledger ledger = ledger_of(*store);
        RC_ASSERT(ledger.tickets.size() == own.size());
        for (const std::string& device : devices) {
          const auto leases = leases_on(ledger, device);
          const bool any_whole =
              std::ranges::any_of(leases, [](const Ticket* lease) { return !lease->shared; });
          RC_ASSERT(!any_whole || leases.size() == 1);
        }
      }
    });
  }
}

}  // namespace
}  // namespace berth::store::lease_store_test
