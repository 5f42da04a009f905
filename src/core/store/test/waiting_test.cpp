// What wakes a waiter, each cause on its own, and what cannot overtake it.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <functional>

#include "berth/queue/ticket_codec.h"
#include "berth/store/directory_store.h"
#include "berth/store/directory_ticket.h"
#include "berth/store/test/forked.h"
#include "berth/store/test/scratch_directory.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::store::waiting_test {
namespace {

using namespace std::chrono_literals;

// Only a wake-up that is lost takes so long.
constexpr std::chrono::milliseconds kLost = 5s;

Result<Decision> stay(const Ledger&, TicketId) {
  return Decision(Stay{});
}
Result<Decision> take(const Ledger&, TicketId) {
  return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
}

class Queue {
 public:
  std::unique_ptr<OwnTicket> join(const Decide& decide) const {
    Ticket draft;
    draft.candidates = {"GPU-a"};
    auto joined = store_->join(draft, decide);
    REQUIRE(joined.has_value());
    return std::move(joined->own);
  }
  bool is_held_back(const OwnTicket& waiter) const { return store_->is_held_back(waiter.ticket().id); }
  void ring(const OwnTicket& waiter) const { store_->ring(waiter.ticket().id); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  ScratchDirectory scratch_;
  std::string path_ = scratch_.path("leases");
  std::unique_ptr<DirectoryStore> store_ = *DirectoryStore::open({path_, DirectoryOrigin::environment});
};

/// What `sleep` gives when this comes to pass in another process as soon as this one sleeps. What
/// has happened before a sleep is seen without being woken.
Woken while_asleep(const std::function<void()>& event, const std::function<Woken()>& sleep) {
  const pid_t sleeper = ::getpid();
  const pid_t other = ::fork();
  if (other == 0) {
    eventually([&] { return sys::process_stat(sleeper)->state == 'S'; });
    event();
    ::_exit(0);
  }
  const Woken woken = sleep();
  ::waitpid(other, nullptr, 0);
  return woken;
}

/// Whether a first in the queue that sleeps soundly is woken by this.
bool wakes(OwnTicket& waiter, TicketId lease, const std::function<void()>& event) {
  const auto sleep = [&] { return *waiter.sleep_until_released({"GPU-a"}, {lease}, {}, kLost); };
  REQUIRE(sleep() == Woken::not_asleep);  // it has just begun to watch
  return while_asleep(event, sleep) == Woken::changed;
}

TEST_CASE("who sleeps behind a rival is woken by its grant, before a tick") {
  const Queue queue;
  const auto rival = queue.join(stay);
  const auto waiter = queue.join(stay);
  const auto began = std::chrono::steady_clock::now();
  const Woken woken = while_asleep(
      [&] { REQUIRE(std::holds_alternative<Taken>(*rival->decide(take))); },
      [&] { return *waiter->sleep_behind(rival->ticket().id, 4 * kLost, [] { return false; }, {}); });
  CHECK(woken == Woken::changed);
  CHECK(std::chrono::steady_clock::now() - began < 2 * kLost);
}

TEST_CASE("a rival whose ticket was removed is none, whether or not it lives on") {
  const Queue queue;
  const auto rival = queue.join(stay);
  std::size_t read = 0;
  const auto look = [&](const Ledger& ledger, TicketId) -> Result<Decision> {
    if (ledger.unread > 0) return Decision(ReadOn{});
    read = ledger.tickets.size();
    return Decision(Stay{});
  };
  const auto waiter = queue.join(look);
  REQUIRE(read == 2);
  REQUIRE(::unlink(queue.file("queue/" + to_text(rival->ticket().id)).c_str()) == 0);
  CHECK(*waiter->sleep_behind(rival->ticket().id, 5ms, [] { return false; }, {}) == Woken::changed);
  REQUIRE(waiter->decide(look).has_value());
  CHECK(read == 1);
}

TEST_CASE("who sleeps behind a rival learns at a tick that its own ticket was removed") {
  const Queue queue;
  const auto rival = queue.join(stay);
  const auto waiter = queue.join(stay);
  const auto sleep = [&] { return *waiter->sleep_behind(rival->ticket().id, 5ms, [] { return false; }, {}); };
  REQUIRE(sleep() == Woken::tick);
  REQUIRE(::unlink(queue.file("queue/" + to_text(waiter->ticket().id)).c_str()) == 0);
  CHECK(sleep() == Woken::changed);
  const auto decided = waiter->decide(stay);
  REQUIRE_FALSE(decided.has_value());
  CHECK(decided.error().message.starts_with("somebody removed the ticket of this request"));
}

/// What ends a sleep behind a rival that goes on waiting.
Woken woken_behind(OwnTicket& waiter, TicketId rival, const Beside& beside,
                   const std::function<void()>& event) {
  const auto sleep = [&] { return *waiter.sleep_behind(rival, 4 * kLost, [] { return false; }, beside); };
  REQUIRE(sleep() != Woken::changed);  // there is something of it that it has just begun to watch
  return while_asleep(event, sleep);
}

TEST_CASE("who sleeps behind a rival is woken by a bell, before a tick") {
  const Queue queue;
  const auto rival = queue.join(stay);
  const auto waiter = queue.join(stay);
  const auto began = std::chrono::steady_clock::now();
  CHECK(woken_behind(*waiter, rival->ticket().id, {{}, {}, true}, [&] { queue.ring(*waiter); }) ==
        Woken::rung);
  CHECK(std::chrono::steady_clock::now() - began < 2 * kLost);
}

TEST_CASE("a bell that nobody listens to is heard when somebody does") {
  const Queue queue;
  const auto rival = queue.join(stay);
  const auto waiter = queue.join(stay);
  const auto sleep = [&](bool bell) {
    return *waiter->sleep_behind(rival->ticket().id, 5ms, [] { return false; }, {{}, {}, bell});
  };
  REQUIRE(sleep(true) == Woken::tick);
  for (int times = 0; times < 1000; ++times) queue.ring(*waiter);
  CHECK(sleep(false) == Woken::tick);
  CHECK(sleep(true) == Woken::rung);
  CHECK(sleep(true) == Woken::tick);
}

TEST_CASE("who sleeps behind a rival is woken by the end of a lease that this does not look after") {
  const Queue queue;
  const auto lease = queue.join(take);
  const auto rival = queue.join(stay);
  const auto waiter = queue.join(stay);
  const auto began = std::chrono::steady_clock::now();
  CHECK(woken_behind(*waiter, rival->ticket().id, {{"GPU-a"}, {lease->ticket().id}, false},
                     [&] { lease->release(); }) == Woken::rung);
  CHECK(std::chrono::steady_clock::now() - began < 2 * kLost);
}

TEST_CASE("the first in the queue watches the ticket of the lease, whatever becomes of the device's file") {
  const Queue queue;
  const auto lease = queue.join(take);
  const auto waiter = queue.join(stay);
  // This process keeps the descriptors, as a child of the job would, and with them the device's
  // file open.
  CHECK(wakes(*waiter, lease->ticket().id, [&] { lease->release(); }));
}

TEST_CASE("the first in the queue watches the device's file, whatever becomes of the ticket") {
  const Queue queue;
  const auto lease = queue.join(take);
  const auto waiter = queue.join(stay);
  CHECK(wakes(*waiter, lease->ticket().id,
              [&] { ::close(::open(queue.file("devices/GPU-a").c_str(), O_WRONLY | O_CLOEXEC)); }));
}

TEST_CASE("what happens between two sleeps ends the second at once") {
  const Queue queue;
  const auto lease = queue.join(take);
  const auto waiter = queue.join(stay);
  const auto sleep = [&](std::chrono::milliseconds tick) {
    return waiter->sleep_until_released({"GPU-a"}, {lease->ticket().id}, {}, tick);
  };
  REQUIRE(sleep(kLost) == Woken::not_asleep);
  ::close(::open(queue.file("devices/GPU-a").c_str(), O_WRONLY | O_CLOEXEC));
  CHECK(sleep(kLost) == Woken::changed);
  CHECK(sleep(5ms) == Woken::tick);
}

TEST_CASE("who comes later with an earlier id does not overtake") {
  const Queue queue;
  const auto lease = queue.join(take);
  const auto waiter = queue.join(stay);
  Ticket forged;
  forged.id.value = waiter->ticket().id.value - 1;
  forged.candidates = {"GPU-a"};
  const std::string text = encode_ticket(forged);
  const int file =
      ::open(queue.file("queue/" + to_text(forged.id)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  REQUIRE(sys::try_lock_bytes(file, kAliveByte, 2) == true);
  const auto outcome = waiter->decide([&](const Ledger& ledger, TicketId) -> Result<Decision> {
    CHECK(find_ticket(ledger, forged.id) == nullptr);
    CHECK(ledger.unread == 0);
    return Decision(Stay{});
  });
  CHECK(outcome.has_value());
  ::close(file);
}

TEST_CASE("far back is who has many before it, for as long as they are there") {
  const Queue queue;
  std::vector<std::unique_ptr<OwnTicket>> before;
  for (int count = 0; count < 20; ++count) before.push_back(queue.join(stay));
  const auto waiter = queue.join([](const Ledger& ledger, TicketId) -> Result<Decision> {
    return ledger.tickets.size() == 1 ? Decision(ReadOn{}) : Decision(Stay{});
  });
  CHECK(waiter->is_far_back());
  CHECK_FALSE(before[5]->is_far_back());
  before.erase(before.begin(), before.begin() + 8);
  CHECK_FALSE(waiter->is_far_back());
}

TEST_CASE("whom its own conditions hold back says so until they do not, or it has a lease") {
  const Queue queue;
  const auto held = [](bool back) {
    return [back](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{back}); };
  };
  const auto first = queue.join(held(true));
  bool seen = false;
  const auto look = [&](const Ledger& ledger, TicketId) -> Result<Decision> {
    if (ledger.unread > 0) return Decision(ReadOn{});
    seen = find_ticket(ledger, first->ticket().id)->held_back;
    return Decision(Stay{});
  };
  const auto second = queue.join(look);
  CHECK(seen);
  CHECK(queue.is_held_back(*first));
  first->decide(held(false));
  second->decide(look);
  CHECK_FALSE(seen);
  first->decide(held(true));
  first->decide(stay);  // says nothing of it
  second->decide(look);
  CHECK(seen);
  first->decide(take);
  CHECK_FALSE(queue.is_held_back(*first));
  const auto file =
      sys::open_prepared(AT_FDCWD, queue.file("leases/" + to_text(first->ticket().id)), O_RDONLY);
  REQUIRE((file && *file));
  CHECK(sys::write_lock_on(file->get(), kAliveByte).value()->end == kWaitingByte);
}

TEST_CASE("whoever can read a ticket and locks all that he can keeps no mark from it") {
  const Queue queue;
  const auto held = [](bool back) {
    return [back](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{back}); };
  };
  const auto own = queue.join(held(false));
  const auto file = sys::open_prepared(AT_FDCWD, queue.file("queue/" + to_text(own->ticket().id)), O_RDONLY);
  REQUIRE((file && *file));
  // What this may lock it keeps: a read lock, since the descriptor is only for reading.
  const auto lock_all = [&] {
    for (off_t byte = 0; byte < 16; ++byte) (void)sys::try_lock_bytes(file->get(), byte, 1);
  };
  for (int i = 0; i < 3; ++i) {
    lock_all();
    own->decide(held(true));
    CHECK(queue.is_held_back(*own));
    lock_all();
    own->decide(held(false));
    CHECK_FALSE(queue.is_held_back(*own));
  }
}

TEST_CASE("a ticket of a participant that knows no mark is not held back") {
  const Queue queue;
  const auto own = queue.join(stay);
  const auto file = sys::open_prepared(AT_FDCWD, queue.file("queue/" + to_text(own->ticket().id)), O_RDONLY);
  REQUIRE((file && *file));
  sys::unlock_bytes(own->descriptors().back(), kMarkBytes, sys::kToTheEnd);
  CHECK_FALSE(queue.is_held_back(*own));
  CHECK(sys::is_byte_locked(file->get(), kWaitingByte).value());
}

}  // namespace
}  // namespace berth::store::waiting_test
