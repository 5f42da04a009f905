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

#include "berth/queue/ticket_codec.h"
#include "berth/store/test/directory_lab.h"
#include "berth/store/test/forked.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/lock.h"

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

}  // namespace
}  // namespace berth::store::odd_ticket_test
