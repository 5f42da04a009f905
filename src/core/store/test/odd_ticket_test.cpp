// Files in a lease directory that are no tickets, and tickets that are not what they say.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "berth/queue/ticket_codec.h"
#include "berth/store/directory_ticket.h"
#include "berth/store/test/directory_lab.h"
#include "berth/store/test/forked.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::store::odd_ticket_test {
namespace {

using namespace std::chrono_literals;

std::string ticket_name(std::uint64_t id) {
  return to_text(TicketId{id});
}

bool is_odd(const Ledger& ledger, const std::string& name) {
  return std::ranges::any_of(ledger.odd,
                             [&](const OddTicket& odd) { return odd.name == name && !odd.reason.empty(); });
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

TEST_CASE("only a live ticket whose id is ahead of the clock raises the ids of those who join") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  const std::uint64_t now = static_cast<std::uint64_t>(sys::since_boot().count());
  const std::uint64_t soon = now + kFarFutureNs / 4;
  write_file(lab.file("leases/" + ticket_name(soon + 1)), "");
  write_file(lab.file("queue/" + ticket_name(soon + 2)), "");
  const Forked far = live_file(lab.file("queue/" + ticket_name(now + 2 * kFarFutureNs)), "");
  REQUIRE(far.succeeded());
  // A lock file of a device: locked, and of mode 1666.
  const std::string linked = lab.file("queue/" + ticket_name(soon + 3));
  const Forked promise = live_file(linked, "");
  REQUIRE(promise.succeeded());
  std::filesystem::permissions(linked, std::filesystem::perms(01666));
  CHECK(wait_for(*lab.open(), "GPU-a")->ticket().id.value < soon);
  const Forked other = live_file(lab.file("queue/" + ticket_name(soon)), "");
  REQUIRE(other.succeeded());
  const auto own = wait_for(*lab.open(), "GPU-a");
  CHECK(own->ticket().id.value > soon + 3);
  CHECK(own->ticket().id.value < soon + 1'000'000);
}

TEST_CASE("an id is the next that no file has, whether or not its ticket lives") {
  const IdsTaken queue{{100}, {{1001}, {1003}}};
  CHECK(next_id(queue, {}, 1000) == TicketId{1000});
  CHECK(next_id(queue, {}, 1001) == TicketId{1002});
  CHECK(next_id(queue, {{99}, {{1002}}}, 1001) == TicketId{1004});
  // Of a live ticket: past it by some of the clock's last digits.
  CHECK(next_id({{5000}, {{5000}, {5007}}}, {}, 6) == TicketId{5008});
}

TEST_CASE("an id comes once, also behind a live ticket whose name is ahead of the clock") {
  const Lab lab;
  take(*lab.open(), "GPU-a").reset();
  const std::uint64_t now = static_cast<std::uint64_t>(sys::since_boot().count());
  const Forked other = live_file(lab.file("queue/" + ticket_name(now + kFarFutureNs / 2)), "");
  REQUIRE(other.succeeded());
  std::set<TicketId> ids;
  for (int lease = 0; lease < 4; ++lease) ids.insert(take(*lab.open(), "GPU-a")->ticket().id);
  CHECK(ids.size() == 4);
}

TEST_CASE("a file that others may write is no ticket, whatever it says and whoever locks it") {
  const Lab lab;
  const auto lease = take(*lab.open(), "GPU-a");
  const auto waiting = wait_for(*lab.open(), "GPU-a");
  CHECK(lab.ledger().tickets.size() == 2);
  for (const auto& [part, ticket] :
       {std::pair("leases/", lease->ticket()), std::pair("queue/", waiting->ticket())}) {
    const std::string path = lab.file(part + to_text(ticket.id));
    for (const mode_t mode : {01664U, 01646U}) {
      CAPTURE(mode);
      REQUIRE(::chmod(path.c_str(), mode) == 0);
      const Ledger ledger = lab.ledger();
      CHECK(find_ticket(ledger, ticket.id) == nullptr);
      CHECK(ledger.odd.empty());
      CHECK(ledger.ended.empty());
      const auto store = lab.open();
      CHECK_FALSE(store->file_of(ticket).has_value());
      CHECK(store->extend(ticket.id, [](const Ticket&) { return Result<std::int64_t>(60); }).error().code ==
            ErrorCode::failure);
    }
    REQUIRE(::chmod(path.c_str(), 01644) == 0);
    CHECK(lab.open()->file_of(ticket).has_value());
  }
  // A file of the same name in the other folder, of somebody else.
  Ticket of_another = waiting->ticket();
  of_another.uid += 1;
  CHECK_FALSE(lab.open()->file_of(of_another).has_value());
}

TEST_CASE("where a file in the place of a lease was found, a lease of that name is not swept") {
  const Lab lab;
  const auto lease = take(*lab.open(), "GPU-a");
  const std::string path = lab.file("leases/" + to_text(lease->ticket().id));
  std::filesystem::rename(path, path + "-kept");
  write_file(path, "");
  std::filesystem::permissions(path, std::filesystem::perms(01666));
  const auto store = lab.open();
  CHECK(store->look()->ledger.tickets.empty());
  std::filesystem::rename(path + "-kept", path);
  store->sweep({});
  CHECK(find_ticket(lab.ledger(), lease->ticket().id) != nullptr);
  std::filesystem::rename(path, path + "-kept");
  write_file(path, "");
  std::filesystem::permissions(path, std::filesystem::perms(01666));
  CHECK(store->look().has_value());
  store->sweep({});
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a name that somebody has put into leases/ before a ticket is granted stops no grant") {
  const Lab lab;
  const auto waiting = wait_for(*lab.open(), "GPU-a");
  const TicketId id = waiting->ticket().id;
  std::filesystem::create_directory(lab.file("leases/" + to_text(id)));
  const auto decided = waiting->decide([](const Ledger&, TicketId) -> Result<Decision> {
    return Decision(Take{{"GPU-a"}, {{"GPU-a", true}}});
  });
  REQUIRE(decided.has_value());
  CHECK(std::holds_alternative<Taken>(*decided));
  const Ledger ledger = lab.ledger();
  REQUIRE(ledger.tickets.size() == 1);
  CHECK(ledger.tickets[0].id == waiting->ticket().id);
  CHECK(ledger.tickets[0].id != id);
  CHECK(ledger.tickets[0].devices == std::vector<std::string>{"GPU-a"});
  CHECK(std::filesystem::is_empty(lab.file("queue")));
  waiting->release();
  CHECK(lab.ledger().tickets.empty());
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

}  // namespace
}  // namespace berth::store::odd_ticket_test
