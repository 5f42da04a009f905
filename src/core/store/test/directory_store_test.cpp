// What only real processes and files show: how a lease lives and ends.

#include "berth/store/directory_store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "berth/queue/ticket_codec.h"
#include "berth/store/test/directory_lab.h"
#include "berth/store/test/forked.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::store::directory_store_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a lease ends when its holder is killed, and the device can be leased at once") {
  const Lab lab;
  Forked holder(hold(lab, "GPU-a"));
  REQUIRE(holder.succeeded());
  const auto store = lab.open();
  CHECK(take(*store, "GPU-a") == nullptr);
  holder.kill();
  CHECK(take(*store, "GPU-a") != nullptr);
}

TEST_CASE("a waiting ticket ends when its process is killed") {
  const Lab lab;
  Forked waiter(queue_for(lab, "GPU-a"));
  REQUIRE(waiter.succeeded());
  CHECK(lab.ledger().tickets.size() == 1);
  waiter.kill();
  CHECK(lab.ledger().tickets.empty());
}

TEST_CASE("whoever inherits the descriptors keeps the lease when the process that took it is killed") {
  const Lab lab;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Forked holder([&] {
    auto* store = lab.open().release();
    if (take(*store, "GPU-a").release() == nullptr) return false;
    const pid_t heir = ::fork();
    if (heir == 0) {
      for (;;) ::pause();
    }
    return ::write(ends[1], &heir, sizeof heir) == sizeof heir;
  });
  REQUIRE(holder.succeeded());
  pid_t heir = 0;
  REQUIRE(::read(ends[0], &heir, sizeof heir) == sizeof heir);
  holder.kill();
  CHECK(lab.ledger().tickets.size() == 1);
  CHECK(take(*lab.open(), "GPU-a") == nullptr);
  ::kill(heir, SIGKILL);
  CHECK(eventually([&] { return take(*lab.open(), "GPU-a") != nullptr; }));
}

TEST_CASE("what a killed holder has left is told as ended until it is swept, and kept where asked") {
  const Lab lab;
  {
    Forked holder(hold(lab, "GPU-a"));
    REQUIRE(holder.succeeded());
  }
  const auto store = lab.open();
  const auto ended = store->look()->ledger.ended;
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].devices == std::vector<std::string>{"GPU-a"});
  store->sweep({ended[0].id});
  CHECK(store->look()->ledger.ended.size() == 1);
  store->sweep({});
  CHECK(store->look()->ledger == Ledger{});
  CHECK(std::filesystem::is_empty(lab.file("leases")));
}

TEST_CASE("a lease says the second of the boot clock at its grant, for its time to count from") {
  const Lab lab;
  const auto boot_seconds = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(sys::since_boot()).count();
  };
  const auto waiting = wait_for(*lab.open(), "GPU-b");
  const std::int64_t before = boot_seconds();
  const auto lease = take(*lab.open(), "GPU-a");
  REQUIRE(lease);
  const Ledger ledger = lab.ledger();
  const Ticket* read = find_ticket(ledger, lease->ticket().id);
  REQUIRE(read != nullptr);
  REQUIRE(read->granted_boot_s);
  CHECK(*read->granted_boot_s >= before);
  CHECK(*read->granted_boot_s <= boot_seconds());
  CHECK(find_ticket(ledger, waiting->ticket().id)->granted_boot_s == std::nullopt);
}

TEST_CASE("a lease says the moment of its decision") {
  const Lab lab;
  const auto joined = lab.open()->join(Ticket{}, [](const Ledger&, TicketId) {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}, 7'654'321});
  });
  REQUIRE(joined);
  const Ledger ledger = lab.ledger();
  const Ticket* read = find_ticket(ledger, joined->own->ticket().id);
  REQUIRE(read != nullptr);
  CHECK(read->granted_boot_s == 7654);
  CHECK(read->granted_boot_ms == 321);
}

TEST_CASE("whoever was killed has ended, though nothing in the directory changes") {
  const Lab lab;
  const auto store = lab.open();
  Forked holder(hold(lab, "GPU-a"));
  REQUIRE(holder.succeeded());
  const auto books = store->look();
  REQUIRE(books);
  const TicketId lease = books->ledger.tickets.front().id;
  const std::int64_t changes = store->lease_changes();
  CHECK_FALSE(store->has_ended(lease));
  holder.kill();
  CHECK(store->has_ended(lease));
  CHECK(store->lease_changes() == changes);
  CHECK(store->waiting_at_most() == 0);
  const auto waiting = wait_for(*lab.open(), "GPU-b");
  CHECK(store->waiting_at_most() == 1);
}

TEST_CASE("an orderly end leaves no file") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  wait_for(*lab.open(), "GPU-a").reset();
  CHECK(std::filesystem::is_empty(lab.file("leases")));
  CHECK(std::filesystem::is_empty(lab.file("queue")));
}

TEST_CASE("a device is not given twice when somebody removes its file") {
  const Lab lab;
  Forked holder(hold(lab, "GPU-a"));
  REQUIRE(holder.succeeded());
  REQUIRE(std::filesystem::remove(lab.file("devices/GPU-a")));
  CHECK(take(*lab.open(), "GPU-a") == nullptr);
  holder.kill();
  CHECK(take(*lab.open(), "GPU-a") != nullptr);
}

TEST_CASE("a lock on a device file that was replaced counts for nothing") {
  const Lab lab;
  const auto store = lab.open();
  const auto own = wait_for(*store, "GPU-a");
  const auto decide = [](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
  };
  {
    // So that the waiting ticket has the old file open.
    Forked holder([&] {
      const int file = ::open(lab.file("devices/GPU-a").c_str(), O_RDONLY | O_CREAT, 0666);
      return ::flock(file, LOCK_EX) == 0;
    });
    CHECK(std::holds_alternative<Conflict>(*own->decide(decide)));
  }
  REQUIRE(std::filesystem::remove(lab.file("devices/GPU-a")));
  Forked other([&] {
    const int file = ::open(lab.file("devices/GPU-a").c_str(), O_RDONLY | O_CREAT, 0666);
    return ::flock(file, LOCK_EX) == 0;
  });
  REQUIRE(other.succeeded());
  CHECK(std::holds_alternative<Conflict>(*own->decide(decide)));
}

TEST_CASE(
    "when the directory is removed, the next lease makes it anew, and a waiting ticket says what happened") {
  const Lab lab;
  const auto store = lab.open();
  const auto old = wait_for(*store, "GPU-a");
  std::filesystem::remove_all(lab.path);
  CHECK(store->look()->ledger == Ledger{});
  const auto own = take(*store, "GPU-a");
  CHECK(own != nullptr);
  const auto outcome =
      old->decide([](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{}); });
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().message.find("somebody removed the ticket") != std::string::npos);
}

TEST_CASE("a bare flock on a device file is respected, and shown") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  Forked citizen([&] {
    const int file = ::open(lab.file("devices/GPU-a").c_str(), O_RDONLY);
    return ::flock(file, LOCK_EX) == 0;
  });
  REQUIRE(citizen.succeeded());
  const auto store = lab.open();
  auto joined = try_take(*store, "GPU-a");
  REQUIRE(joined.has_value());
  CHECK(std::holds_alternative<Conflict>(joined->outcome));
  const ForeignLock its{"GPU-a", true, static_cast<std::uint32_t>(citizen.pid())};
  CHECK(foreign_locks(*store) == std::vector{its});
  CHECK(store->look()->foreign_locks.empty());  // nobody asked the kernel
  const LocksSeen before = store->see_locks();
  citizen.kill();
  // Nothing tells of that, and what was seen is not asked again.
  CHECK(store->look(Extent::leases, before)->foreign_locks == std::vector{its});
  CHECK(foreign_locks(*store).empty());
}

TEST_CASE("a lease that ends after the locks were seen has left no stranger's lock") {
  const Lab lab;
  const auto store = lab.open();
  take(*store, "GPU-b").reset();  // a file that no ticket explains: without one nobody asks for locks
  std::filesystem::last_write_time(lab.file("leases"), {});
  SUBCASE("it is given back") {
    const auto lease = take(*store, "GPU-a");
    std::filesystem::last_write_time(lab.file("leases"), {});
    const LocksSeen seen = store->see_locks();
    REQUIRE(seen.held.size() == 1);
    lease->release();
    CHECK(store->look(Extent::leases, seen)->foreign_locks.empty());
  }
  SUBCASE("its holder is killed") {
    Forked holder(hold(lab, "GPU-a"));
    REQUIRE(holder.succeeded());
    const LocksSeen seen = store->see_locks();
    REQUIRE(seen.held.size() == 1);
    holder.kill();
    CHECK(store->look(Extent::leases, seen)->foreign_locks.empty());
  }
  SUBCASE("it begins after they were seen, and lasts") {
    const LocksSeen seen = store->see_locks();
    const auto lease = take(*store, "GPU-a");
    CHECK(store->look(Extent::leases, seen)->foreign_locks.empty());
    CHECK(store->look(Extent::leases, seen)->ledger.tickets.size() == 1);
  }
}

TEST_CASE("locks are not asked for where every device is leased whole") {
  const Lab lab;
  const auto store = lab.open();
  const auto lease = take(*store, "GPU-a");
  CHECK(store->see_locks().held.empty());
  const auto share = take_share(*store, "GPU-b", 8);
  CHECK(store->see_locks().held.size() == 2);
}

TEST_CASE("a whole lease keeps out every bare flock, a share only the exclusive ones") {
  const Lab lab;
  const auto store = lab.open();
  const auto can_lock = [&](int mode) {
    const int file = ::open(lab.file("devices/GPU-a").c_str(), O_RDONLY | O_CLOEXEC);
    const bool locked = ::flock(file, mode | LOCK_NB) == 0;
    ::close(file);
    return locked;
  };
  {
    const auto whole = take(*store, "GPU-a");
    CHECK_FALSE(can_lock(LOCK_SH));
    CHECK_FALSE(can_lock(LOCK_EX));
  }
  const auto share = store->join(draft("GPU-a"), [](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", false}}});
  });
  REQUIRE(share.has_value());
  CHECK(can_lock(LOCK_SH));
  CHECK_FALSE(can_lock(LOCK_EX));
}

TEST_CASE("promises are held by the kernel, whatever becomes of the tickets that say them") {
  const Lab lab;
  const auto store = lab.open();
  auto first = take_share(*store, "GPU-a", 30);
  auto second = take_share(*store, "GPU-a", 30);
  REQUIRE((first && second));
  for (const auto& ticket : std::filesystem::directory_iterator(lab.file("leases")))
    std::filesystem::remove(ticket);
  CHECK(take_share(*store, "GPU-a", 21) == nullptr);
  auto third = take_share(*store, "GPU-a", 20);
  REQUIRE(third);
  CHECK(take_share(*store, "GPU-a", 0) != nullptr);
  first.reset();
  CHECK(take_share(*store, "GPU-a", 31) == nullptr);
  auto fourth = take_share(*store, "GPU-a", 29);
  REQUIRE(fourth);
  // What is free now is in two pieces.
  third->release();
  CHECK(take_share(*store, "GPU-a", 22) == nullptr);
  CHECK(take_share(*store, "GPU-a", 21) != nullptr);
}

TEST_CASE("a share whose try failed holds nothing, and whoever inherits one holds its promise") {
  const Lab lab;
  Forked holder([&] {
    auto* store = lab.open().release();
    return take_share(*store, "GPU-a", 60).release() != nullptr;
  });
  REQUIRE(holder.succeeded());
  const auto store = lab.open();
  CHECK(take_share(*store, "GPU-a", 30) == nullptr);
  CHECK(take_share(*store, "GPU-a", 20) != nullptr);
  holder.kill();
  CHECK(take_share(*store, "GPU-a", 80) != nullptr);
}

TEST_CASE("a device file that can only be read holds promises too") {
  const Lab lab;
  const auto store = lab.open();
  take(*store, "GPU-a").reset();
  const std::string file = lab.file("devices/GPU-a");
  sys::Descriptor stranger(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(*sys::try_lock_bytes(stranger.get(), 10, 50));
  CHECK(take_share(*store, "GPU-a", 31) == nullptr);
  CHECK(take_share(*store, "GPU-a", 30) != nullptr);
}

TEST_CASE("somebody who locks byte by byte holds up nobody for long") {
  const Lab lab;
  const auto store = lab.open();
  take(*store, "GPU-a").reset();
  const std::string file = lab.file("devices/GPU-a");
  const sys::Descriptor stranger(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  constexpr off_t kLocks = 10'000;
  // From the last on, which the kernel finds at once.
  for (off_t i = kLocks; i > 0; --i) REQUIRE(*sys::try_lock_bytes(stranger.get(), 2 * i, 1));
  // What the kernel takes to look through all of them, on this machine.
  const sys::Descriptor other(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const auto began = std::chrono::steady_clock::now();
  constexpr int kQuestions = 50;
  for (int i = 0; i < kQuestions; ++i) REQUIRE(!*sys::lock_in(other.get(), {3 * kLocks, 4 * kLocks}));
  const auto asked = std::chrono::steady_clock::now();
  const auto share = [](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", false, 1U << 30, 1U << 31}}});
  };
  const auto joined = store->join(draft("GPU-a"), share);
  REQUIRE(joined.has_value());
  CHECK(std::holds_alternative<Conflict>(joined->outcome));
  CHECK(std::chrono::steady_clock::now() - asked < 100ms + 10 * (asked - began));
}

TEST_CASE("a lease's own lock is nobody else's") {
  const Lab lab;
  Forked holder(hold(lab, "GPU-a"));
  CHECK(foreign_locks(*lab.open()).empty());
}

TEST_CASE("a process that is stopped in the gate delays the others, and is named") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  std::string told;
  auto stopped = std::make_unique<Forked>([&] {
    const int gate = ::open(lab.path.c_str(), O_RDONLY | O_DIRECTORY);
    return ::flock(gate, LOCK_EX) == 0;
  });
  REQUIRE(stopped->succeeded());
  const std::string pid = std::to_string(stopped->pid());
  const auto store = lab.open([&](const std::string& sentence) {
    told = sentence;
    stopped.reset();
  });
  CHECK(take(*store, "GPU-a") != nullptr);
  CHECK(told.find("process " + pid) != std::string::npos);
}

TEST_CASE("a sleeper at the head wakes when the holder is killed, also while it goes to sleep") {
  const Lab lab;
  for (const bool killed_before_sleep : {true, false}) {
    CAPTURE(killed_before_sleep);
    Forked holder(hold(lab, "GPU-a"));
    const TicketId lease = lab.ledger().tickets.at(0).id;
    const auto store = lab.open();
    const auto own = wait_for(*store, "GPU-a");
    if (killed_before_sleep) holder.kill();
    const auto decide = [&](const Ledger& ledger, TicketId) -> Result<Decision> {
      if (!leases_on(ledger, "GPU-a").empty()) return Decision(Stay{});
      return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
    };
    bool quiet = false;
    for (int looks = 0; own->ticket().phase == TicketPhase::waiting; ++looks) {
      REQUIRE(own->decide(decide).has_value());
      if (own->ticket().phase == TicketPhase::granted) break;
      if (looks == 2) holder.signal(SIGKILL);
      // As the waiting do: the kernel tells of a close before it ends the locks.
      const auto woken = own->sleep_until_released({"GPU-a"}, {lease}, {}, quiet ? 1h : 20ms);
      quiet = !quiet && woken == Woken::tick;
    }
    CHECK(own->ticket().phase == TicketPhase::granted);
  }
}

TEST_CASE("a sleeper behind a rival wakes when the rival is killed") {
  const auto never = [] { return false; };
  const Lab lab;
  Forked first(queue_for(lab, "GPU-a"));
  const TicketId rival = lab.ledger().tickets.at(0).id;
  const auto store = lab.open();
  const auto own = wait_for(*store, "GPU-a");
  CHECK(own->sleep_behind(rival, 5ms, never, {}) == Woken::tick);
  int ticks = 0;
  CHECK(own->sleep_behind(rival, 5ms, [&] { return ++ticks < 3; }, {}) == Woken::tick);
  CHECK(ticks == 3);
  first.kill();
  CHECK(own->sleep_behind(rival, 1h, never, {}) == Woken::changed);
}

// Somebody's dead tickets: whole ones, of a process that has ended.
void leave_dead(const Lab& lab, const std::string& part, int count) {
  for (int i = 1; i <= count; ++i) {
    Ticket dead = draft("GPU-a");
    dead.id = {static_cast<std::uint64_t>(i)};
    dead.since_s = dead.joined_s = 1;
    if (part == "leases") {
      dead.phase = TicketPhase::granted;
      dead.devices = {"GPU-a"};
    }
    write_file(lab.file(part + "/" + to_text(dead.id)), encode_ticket(dead));
  }
}

TEST_CASE("among thousands of dead tickets those that live are found, and of the dead a part at a time") {
  const Lab lab;
  Forked holder(hold(lab, "GPU-b"));
  REQUIRE(holder.succeeded());
  Forked waiter(queue_for(lab, "GPU-b"));
  REQUIRE(waiter.succeeded());
  constexpr int kDead = 6000;
  for (const char* part : {"queue", "leases"}) leave_dead(lab, part, kDead);
  const auto store = lab.open();
  const Ledger ledger = store->look()->ledger;
  REQUIRE(ledger.tickets.size() == 2);
  CHECK(ledger.tickets[0].devices == std::vector<std::string>{"GPU-b"});
  CHECK(ledger.tickets[1].phase == TicketPhase::waiting);
  CHECK(!ledger.ended.empty());
  CHECK(ledger.ended.size() <= 4096);
  CHECK(take(*store, "GPU-b") == nullptr);

  // Who joins stands behind one, and not behind thousands.
  std::size_t before = 0;
  const auto mine = store->join(draft("GPU-b"), [&](const Ledger& seen, TicketId id) -> Result<Decision> {
    if (seen.unread > 0) return Decision(ReadOn{true});
    before = static_cast<std::size_t>(std::ranges::count_if(seen.tickets, [&](const Ticket& ticket) {
      return ticket.phase == TicketPhase::waiting && ticket.id < id;
    }));
    return Decision(Stay{});
  });
  REQUIRE(mine.has_value());
  CHECK(before == 1);

  for (int looks = 0; looks < 64; ++looks) {
    REQUIRE(store->look().has_value());
    store->sweep({});
  }
  for (const char* part : {"queue", "leases"})
    CHECK(std::distance(std::filesystem::directory_iterator(lab.file(part)), {}) <= 2);
}

TEST_CASE("of a thousand dead tickets a look reads some hundred, and finds the living one") {
  if (::geteuid() != 0) return;  // acts as another user, whom the dead do not belong to
  const Lab lab;
  const auto lease = take(*lab.open(), "GPU-b");
  REQUIRE(lease != nullptr);
  leave_dead(lab, "leases", 1000);
  std::filesystem::permissions(std::filesystem::path(lab.path).parent_path(), std::filesystem::perms(0755));
  constexpr uid_t kNobody = 65534;
  Forked other(
      [&] {
        const Ledger ledger = lab.ledger();
        return ledger.tickets.size() == 1 && !ledger.ended.empty() && ledger.ended.size() <= 400;
      },
      kNobody);
  CHECK(other.succeeded());
}

}  // namespace
}  // namespace berth::store::directory_store_test
