// What becomes of a store whose directory is removed or replaced under its hands.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

#include "berth/store/directory_store.h"
#include "berth/store/test/directory_lab.h"
#include "berth/store/test/forked.h"

namespace berth::store::removed_directory_test {
namespace {

TEST_CASE("what a look found dead is swept only in the directory in which it was found") {
  const Lab lab;
  Forked holder(hold(lab, "GPU-a"));
  REQUIRE(holder.succeeded());
  const std::string name = "leases/" + to_text(lab.ledger().tickets.at(0).id);
  holder.kill();
  const auto store = lab.open();
  REQUIRE(store->look().has_value());
  std::filesystem::rename(lab.path, lab.path + ".old");
  SUBCASE("there is none") {
    const Forked sweeper([&] {
      const bool is_empty = store->see_locks().held.empty();
      store->sweep({});
      return is_empty;
    });
    CHECK(sweeper.succeeded());
  }
  SUBCASE("another one has a file of that name") {
    take(*lab.open(), "GPU-a").reset();
    write_file(lab.file(name), "");
    CHECK(store->see_locks().held.empty());
    store->sweep({});
    CHECK(std::filesystem::exists(lab.file(name)));
  }
}

std::string g_path, g_path_of_old;

TEST_CASE("a directory that is removed during a look is as empty as one that never was") {
  const Lab lab;
  const Forked looker([&] {
    const auto store = lab.open();
    take(*store, "GPU-a").reset();
    const int stranger = ::open(lab.file("devices/GPU-a").c_str(), O_RDONLY | O_CLOEXEC);
    if (::flock(stranger, LOCK_EX) != 0) return false;
    const LocksSeen seen = store->see_locks();
    // To open this file sends the signal: so the directory goes just when its leases are read.
    const std::string ticket = lab.file("leases/" + to_text(TicketId{7}));
    write_file(ticket, "");
    g_path = lab.path;
    g_path_of_old = lab.path + ".old";
    ::signal(SIGIO, [](int) { ::rename(g_path.c_str(), g_path_of_old.c_str()); });
    if (::fcntl(::open(ticket.c_str(), O_RDWR | O_CLOEXEC), F_SETLEASE, F_WRLCK) != 0) return false;
    std::filesystem::last_write_time(lab.file("leases"), {});
    const auto books = store->look(Extent::leases, seen);
    return seen.held.size() == 1 && !std::filesystem::exists(lab.path) && books &&
           books->ledger.tickets.empty() && books->foreign_locks.empty();
  });
  CHECK(looker.succeeded());
}

}  // namespace
}  // namespace berth::store::removed_directory_test
