// Who could take the folder of a user's jobs away, and how its user comes to one all the same.

#include "berth/sys/own_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "berth/store/test/forked.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::store::own_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kAlice = 20001;
constexpr uid_t kMallory = 20002;

bool make(const std::string& path, mode_t mode) {
  return ::mkdir(path.c_str(), 0700) == 0 && ::chmod(path.c_str(), mode) == 0;
}

bool as(uid_t uid, const std::function<bool()>& work) {
  return Forked(work, uid).succeeded();
}

// What alice is told of it; "": it is safe, or not there yet.
std::string told_alice(const ScratchDirectory& scratch, const std::string& path) {
  const std::string answer = scratch.path("answer");
  fs::remove(answer);
  const bool is_told = as(kAlice, [&] {
    const auto safe = sys::is_safe_from_others(path);
    return static_cast<bool>(std::ofstream(answer) << (safe ? "" : safe.error().message));
  });
  std::ifstream file(answer);
  return is_told ? std::string(std::istreambuf_iterator<char>(file), {}) : "no answer";
}

TEST_CASE("a folder is safe where nobody else can put another in its place" *
          doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory scratch;
  const std::string home = scratch.path("home");
  const std::string jobs = home + "/jobs";
  REQUIRE(as(kAlice, [&] { return make(home, 0755) && make(jobs, 0700); }));
  CHECK(told_alice(scratch, jobs) == "");
  CHECK(told_alice(scratch, home + "/not/there") == "");
  SUBCASE("others may write above it") {
    REQUIRE(::chmod(home.c_str(), 0777) == 0);
    CHECK(told_alice(scratch, jobs).contains("others may write in " + home + " (mode 777)"));
  }
  SUBCASE("a group may write above it, of which others are") {
    REQUIRE(::chown(home.c_str(), kAlice, kMallory) == 0);
    REQUIRE(::chmod(home.c_str(), 0775) == 0);
    CHECK(told_alice(scratch, jobs).contains("others may write in " + home));
  }
  SUBCASE("what is above it is another's") {
    REQUIRE(::chown(home.c_str(), kMallory, kMallory) == 0);
    CHECK(told_alice(scratch, jobs).contains("set XDG_STATE_HOME"));
  }
  SUBCASE("others may write where they cannot come") {
    const std::string open = home + "/open";
    REQUIRE(as(kAlice, [&] { return make(open, 0777) && make(open + "/jobs", 0700); }));
    CHECK(told_alice(scratch, open + "/jobs") != "");
    REQUIRE(::chmod(home.c_str(), 0700) == 0);
    CHECK(told_alice(scratch, open + "/jobs") == "");
  }
  SUBCASE("a link of another's leads to it") {
    const std::string link = scratch.path("link");
    REQUIRE(as(kMallory, [&] { return ::symlink(jobs.c_str(), link.c_str()) == 0; }));
    CHECK(told_alice(scratch, link + "/more").contains(link + " belongs to"));
  }
  SUBCASE("a link of its user's leads to where others may write") {
    const std::string open = scratch.path("open");
    REQUIRE(as(kMallory, [&] { return make(open, 0777); }));
    REQUIRE(as(kAlice, [&] { return ::symlink("../open", (home + "/link").c_str()) == 0; }));
    REQUIRE(::chmod(home.c_str(), 0700) == 0);
    CHECK(told_alice(scratch, home + "/link").contains(open + " belongs to"));
  }
}

// As alice sees it: the place of her folder among those of the shared one.
std::string own_of_alice(const std::string& shared) {
  const bool is_told = as(kAlice, [&] {
    const auto own = sys::own_folder_in(shared, "jobs-alice");
    if (!own) return false;
    ::mkdir(own->c_str(), 0700);
    return make(*own + "/machine", 0700) || errno == EEXIST;
  });
  if (!is_told) return "an error";
  std::string found;
  for (const auto& entry : fs::directory_iterator(shared)) {
    struct stat status{};
    if (::lstat(entry.path().c_str(), &status) == 0 && status.st_uid == kAlice)
      found += (found.empty() ? "" : " and ") + entry.path().filename().string();
  }
  return found;
}

TEST_CASE("whoever takes the name of a user's folder first keeps the user from nothing" *
          doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory scratch;
  const std::string shared = fs::path(scratch.path("x")).parent_path();
  const std::string plain = scratch.path("jobs-alice");
  SUBCASE("nobody has") {
    CHECK(own_of_alice(shared) == "jobs-alice");
  }
  const std::string elsewhere = scratch.path("elsewhere");
  REQUIRE(as(kMallory, [&] { return make(elsewhere, 0777); }));
  const auto keeps_another = [&] {
    const std::string own = own_of_alice(shared);
    CHECK(own.starts_with("jobs-alice."));
    // It stays the one, also when the name is free again.
    CHECK(own_of_alice(shared) == own);
    REQUIRE(as(kMallory, [&] { return ::rename(plain.c_str(), (plain + ".gone").c_str()) == 0; }));
    CHECK(own_of_alice(shared) == own);
  };
  SUBCASE("a folder") {
    REQUIRE(as(kMallory, [&] { return make(plain, 0777); }));
    keeps_another();
  }
  SUBCASE("a link") {
    REQUIRE(as(kMallory, [&] { return ::symlink(elsewhere.c_str(), plain.c_str()) == 0; }));
    keeps_another();
  }
  SUBCASE("a fifo") {
    REQUIRE(as(kMallory, [&] { return ::mkfifo(plain.c_str(), 0666) == 0; }));
    keeps_another();
  }
}

}  // namespace
}  // namespace berth::store::own_folder_test
