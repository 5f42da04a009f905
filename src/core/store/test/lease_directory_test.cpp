// Whose directory it is, who may do what in it, and when it is refused or full.

#include "berth/store/lease_directory.h"

#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "berth/store/test/directory_lab.h"
#include "berth/store/test/forked.h"

namespace berth::store::lease_directory_test {
namespace {

constexpr uid_t kAlice = 20001;
constexpr uid_t kBob = 20002;

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
        return store->notes().size() == 1 &&
               store->notes()[0].find("user uid 20001 owns the lease directory") != std::string::npos;
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
    // More files are of this user, and take less room.
    REQUIRE(::chown((path + "/queue/filler").c_str(), 54321, 54321) == 0);
    const auto refused = try_take(**store, "GPU-c");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("No space left") != std::string::npos);
    CHECK(refused.error().message.find("most of the files there are of uid 54321") != std::string::npos);
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
}  // namespace berth::store::lease_directory_test
