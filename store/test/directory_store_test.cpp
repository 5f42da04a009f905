// What only real processes, users and files show.

#include "berth/store/directory_store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "berth/core/ticket_codec.h"
#include "berth/store/test/forked.h"
#include "berth/store/test/scratch_directory.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/lock.h"

namespace berth::store {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAlice = 1001;
constexpr uid_t kBob = 1002;

class Lab {
 public:
  std::unique_ptr<DirectoryStore> open(Tell tell = {}) const {
    auto opened = DirectoryStore::open({path, DirectoryOrigin::environment}, std::move(tell));
    if (!opened) FAIL(opened.error().message);
    return std::move(*opened);
  }
  Ledger ledger() const { return open()->look()->ledger; }
  std::string file(const std::string& name) const { return path + "/" + name; }

 private:
  ScratchDirectory scratch_;

 public:
  const std::string path = scratch_.path("leases");
};

Ticket draft(const std::string& uuid) {
  Ticket ticket;
  ticket.pid = static_cast<std::uint32_t>(::getpid());
  ticket.candidates = {uuid};
  return ticket;
}

Result<Joined> try_take(LeaseStore& store, const std::string& uuid) {
  return store.join(draft(uuid), [&](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{uuid}, {{uuid, true}}});
  });
}
std::unique_ptr<OwnTicket> take(LeaseStore& store, const std::string& uuid) {
  auto joined = try_take(store, uuid);
  if (!joined || !std::holds_alternative<Taken>(joined->outcome)) return nullptr;
  return std::move(joined->own);
}
std::unique_ptr<OwnTicket> wait_for(LeaseStore& store, const std::string& uuid) {
  auto joined =
      store.join(draft(uuid), [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{}); });
  return joined ? std::move(joined->own) : nullptr;
}

/// A process that holds a lease on `uuid` until it is killed. It never ends its objects in good order.
std::function<bool()> hold(const Lab& lab, const std::string& uuid) {
  return [&lab, uuid] {
    auto* store = lab.open().release();
    return take(*store, uuid).release() != nullptr;
  };
}
std::function<bool()> queue_for(const Lab& lab, const std::string& uuid) {
  return [&lab, uuid] {
    auto* store = lab.open().release();
    return wait_for(*store, uuid).release() != nullptr;
  };
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string ticket_name(std::uint64_t id) {
  return to_text(TicketId{id});
}

bool is_odd(const Ledger& ledger, const std::string& name) {
  return std::ranges::any_of(ledger.odd,
                             [&](const OddTicket& odd) { return odd.name == name && !odd.reason.empty(); });
}

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
  CHECK(outcome.error().message.find("was removed") != std::string::npos);
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
  const auto books = store->look();
  REQUIRE(books->foreign_locks.size() == 1);
  CHECK(books->foreign_locks[0] == ForeignLock{"GPU-a", true, static_cast<std::uint32_t>(citizen.pid())});
  citizen.kill();
  CHECK(store->look()->foreign_locks.empty());
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

TEST_CASE("a lease's own lock is nobody else's") {
  const Lab lab;
  Forked holder(hold(lab, "GPU-a"));
  CHECK(lab.open()->look()->foreign_locks.empty());
}

TEST_CASE("files that are no tickets are named, count for nothing, and hang nobody") {
  const Lab lab;
  const auto store = lab.open();
  const auto own = take(*store, "GPU-a");
  const std::string ticket = lab.file("leases/" + to_text(own->ticket().id));
  write_file(lab.file("queue/README"), "hello");
  REQUIRE(::mkfifo(lab.file("queue/" + ticket_name(1)).c_str(), 0666) == 0);
  REQUIRE(::symlink(ticket.c_str(), lab.file("leases/" + ticket_name(2)).c_str()) == 0);
  REQUIRE(::mkdir(lab.file("leases/" + ticket_name(3)).c_str(), 0777) == 0);
  REQUIRE(::link(ticket.c_str(), lab.file("leases/" + ticket_name(4)).c_str()) == 0);
  REQUIRE(::link(ticket.c_str(), lab.file("queue/" + to_text(own->ticket().id)).c_str()) == 0);

  const Ledger ledger = lab.ledger();
  CHECK(ledger.tickets.size() == 1);
  CHECK(ledger.odd.size() == 6);
  for (const std::string& name :
       {std::string("README"), ticket_name(1), ticket_name(2), ticket_name(3), ticket_name(4)}) {
    CAPTURE(name);
    CHECK(is_odd(ledger, name));
  }
  CHECK(take(*store, "GPU-b") != nullptr);
}

/// A live ticket of any text: what a newer, a broken or a hostile program would make.
Forked live_file(const std::string& path, const std::string& text) {
  return Forked([&] {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    return ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
           sys::try_lock_bytes(file, kAliveByte, 2).value_or(false);
  });
}

TEST_CASE("a live ticket that cannot be understood is named with the reason") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  const std::uint64_t now = static_cast<std::uint64_t>(sys::since_boot().count());
  Ticket ticket = draft("GPU-a");
  ticket.id.value = now;
  ticket.joined_s = 1;
  const std::string good = encode_ticket(ticket);
  Ticket future = ticket;
  future.id.value = now + 2 * kFarFutureNs;
  struct Bad {
    std::uint64_t name;
    std::string text;
    const char* reason;
  };
  const Bad table[] = {
      {now + 1, "", "line 1"},
      {now + 2, good.substr(0, good.size() / 2), ""},
      {now + 3, std::string(5000, 'x'), "longer than any ticket"},
      {now + 4, "berth-ticket 2\nid=" + ticket_name(now + 4) + "\nend\n", "version 2"},
      {now + 5, good, "the id inside is another"},
      {future.id.value, encode_ticket(future), "in the future"},
  };
  for (const Bad& bad : table) {
    CAPTURE(bad.text);
    const Forked owner = live_file(lab.file("queue/" + ticket_name(bad.name)), bad.text);
    REQUIRE(owner.succeeded());
    const Ledger ledger = lab.ledger();
    CHECK(ledger.tickets.empty());
    REQUIRE(ledger.odd.size() == 1);
    CHECK(ledger.odd[0].name == ticket_name(bad.name));
    CHECK(ledger.odd[0].reason.find(bad.reason) != std::string::npos);
    std::filesystem::remove(lab.file("queue/" + ticket_name(bad.name)));
  }
}

TEST_CASE("an id in the far future does not raise the ids of those who join") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  const std::uint64_t now = static_cast<std::uint64_t>(sys::since_boot().count());
  write_file(lab.file("queue/" + ticket_name(now + 2 * kFarFutureNs)), "");
  write_file(lab.file("queue/" + ticket_name(now + kFarFutureNs / 2)), "");
  const auto own = wait_for(*lab.open(), "GPU-a");
  CHECK(own->ticket().id.value > now + kFarFutureNs / 2);
  CHECK(own->ticket().id.value < now + kFarFutureNs / 2 + 1'000'000);
}

TEST_CASE("an id comes once, also behind a file whose name is ahead of the clock") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  const std::uint64_t now = static_cast<std::uint64_t>(sys::since_boot().count());
  write_file(lab.file("queue/" + ticket_name(now + kFarFutureNs / 2)), "");
  std::set<TicketId> ids;
  for (int lease = 0; lease < 4; ++lease) ids.insert(take(*lab.open(), "GPU-a")->ticket().id);
  CHECK(ids.size() == 4);
}

TEST_CASE("a ticket under somebody's file lease is named at once") {
  const Lab lab;
  const auto store = lab.open();
  take(*store, "GPU-a").reset();
  const std::string path = lab.file("queue/" + ticket_name(7));
  write_file(path, "");
  Forked owner([&] {
    ::signal(SIGIO, SIG_IGN);
    return ::fcntl(::open(path.c_str(), O_RDWR), F_SETLEASE, F_WRLCK) == 0;
  });
  REQUIRE(owner.succeeded());
  const auto began = std::chrono::steady_clock::now();
  CHECK(is_odd(lab.ledger(), ticket_name(7)));
  // The kernel would make a plain open wait for 45 s.
  CHECK(std::chrono::steady_clock::now() - began < 10s);
}

TEST_CASE("a reader cannot make a dead ticket look alive") {
  const Lab lab;
  std::string path;
  {
    Forked holder(hold(lab, "GPU-a"));
    path = lab.file("leases/" + to_text(lab.ledger().tickets.at(0).id));
  }
  Forked forger([&] {
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_len = 2;
    const int file = ::open(path.c_str(), O_RDONLY);
    return ::fcntl(file, F_OFD_SETLK, &lock) == 0 && ::flock(file, LOCK_EX) == 0;
  });
  REQUIRE(forger.succeeded());
  CHECK(lab.ledger().tickets.empty());
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
    for (int looks = 0; own->ticket().phase == TicketPhase::waiting; ++looks) {
      REQUIRE(own->decide(decide).has_value());
      if (own->ticket().phase == TicketPhase::granted) break;
      if (looks == 2) holder.signal(SIGKILL);
      REQUIRE(own->sleep_until_released({"GPU-a"}, {lease}, {}, 1h).has_value());
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
  CHECK(own->sleep_behind(rival, 5ms, never) == Woken::tick);
  int ticks = 0;
  CHECK(own->sleep_behind(rival, 5ms, [&] { return ++ticks < 3; }) == Woken::tick);
  CHECK(ticks == 3);
  first.kill();
  CHECK(own->sleep_behind(rival, 1h, never) == Woken::changed);
}

TEST_CASE("users with a narrow umask work together" * doctest::skip(::geteuid() != 0)) {
  const Lab lab;
  const mode_t before = ::umask(077);
  {
    Forked alice(hold(lab, "GPU-a"), kAlice);
    CHECK(alice.succeeded());
    Forked bob(
        [&] {
          auto store = lab.open();
          return take(*store, "GPU-a") == nullptr && take(*store, "GPU-b") != nullptr;
        },
        kBob);
    CHECK(bob.succeeded());
    CHECK(lab.ledger().tickets.at(0).uid == kAlice);
  }
  Forked bob(hold(lab, "GPU-a"), kBob);
  CHECK(bob.succeeded());
  ::umask(before);
}

TEST_CASE("in root's directory nobody can remove, edit or end another user's ticket" *
          doctest::skip(::geteuid() != 0)) {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  Forked alice(hold(lab, "GPU-a"), kAlice);
  REQUIRE(alice.succeeded());
  const std::string ticket = lab.file("leases/" + to_text(lab.ledger().tickets.at(0).id));
  Forked bob(
      [&] {
        const bool removed =
            ::unlink(ticket.c_str()) == 0 || ::unlink(lab.file("devices/GPU-a").c_str()) == 0;
        const bool moved = ::rename(ticket.c_str(), lab.file("queue/x").c_str()) == 0;
        const bool edited = ::open(ticket.c_str(), O_RDWR) >= 0;
        lab.open()->sweep({});
        return !removed && !moved && !edited;
      },
      kBob);
  CHECK(bob.succeeded());
  CHECK(lab.ledger().tickets.size() == 1);
}

TEST_CASE("another user's directory is used, and its owner is named" * doctest::skip(::geteuid() != 0)) {
  const Lab lab;
  {
    Forked alice(hold(lab, "GPU-a"), kAlice);
  }
  Forked bob(
      [&] {
        auto store = lab.open();
        return store->notes().size() == 1 && store->notes()[0].find("trusts uid 1001") != std::string::npos;
      },
      kBob);
  CHECK(bob.succeeded());
}

TEST_CASE("a directory that is not safe is refused, with the reason") {
  const ScratchDirectory scratch;
  const auto reason = [&](const std::string& name) {
    const auto opened = DirectoryStore::open({scratch.path(name), DirectoryOrigin::environment});
    return opened ? std::string("none") : opened.error().message;
  };
  REQUIRE(::mkdir(scratch.path("open").c_str(), 0700) == 0);
  REQUIRE(::chmod(scratch.path("open").c_str(), 0777) == 0);
  CHECK(reason("open").find("lacks the sticky bit") != std::string::npos);
  write_file(scratch.path("file"), "");
  CHECK(reason("file").find("is not a directory") != std::string::npos);
  REQUIRE(::symlink("open", scratch.path("link").c_str()) == 0);
  CHECK(reason("link").find("is not a directory") != std::string::npos);
  REQUIRE(::mkdir(scratch.path("mine").c_str(), 0700) == 0);
  CHECK(reason("mine") == "none");
  CHECK(reason("missing") == "none");
}

TEST_CASE("a directory made by hand is left as it is by a look, and made whole by a lease") {
  const Lab lab;
  REQUIRE(::mkdir(lab.path.c_str(), 0755) == 0);
  CHECK(lab.ledger() == Ledger{});
  CHECK(std::filesystem::is_empty(lab.path));
  CHECK(take(*lab.open(), "GPU-a") != nullptr);
}

TEST_CASE("network file systems are refused by name, local ones are not") {
  CHECK(untrusted_file_system(0x6969) == "NFS");
  CHECK(untrusted_file_system(0xFF534D42) == "CIFS");
  CHECK(untrusted_file_system(static_cast<std::int32_t>(0xFF534D42)) == "CIFS");
  CHECK(untrusted_file_system(0x0BD00BD0) == "Lustre");
  CHECK_FALSE(untrusted_file_system(0xEF53).has_value());
  CHECK_FALSE(untrusted_file_system(0x01021994).has_value());
}

TEST_CASE("when the directory is full a join says whose files fill it, and what is held stays held") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("small");
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  if (::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k,mode=1777") != 0) {
    MESSAGE("skipped: needs the right to mount");
    return;
  }
  {
    auto store = DirectoryStore::open({path, DirectoryOrigin::environment});
    REQUIRE(store.has_value());
    const auto own = take(**store, "GPU-a");
    const auto waiter = wait_for(**store, "GPU-b");
    write_file(path + "/queue/filler", std::string(100'000, 'x'));
    const auto refused = try_take(**store, "GPU-c");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("No space left") != std::string::npos);
    CHECK(refused.error().message.find("most of the files there are of") != std::string::npos);
    CHECK((*store)->look()->ledger.tickets.size() == 2);
    const auto outcome = waiter->decide([](const Ledger&, TicketId) -> Result<Decision> {
      return Decision(Take{{"GPU-b"}, {{"GPU-b", true}}});
    });
    REQUIRE(outcome.has_value());
    CHECK(std::holds_alternative<Taken>(*outcome));
  }
  ::umount(path.c_str());
}

}  // namespace
}  // namespace berth::store
