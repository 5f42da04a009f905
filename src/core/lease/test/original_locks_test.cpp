#include "berth/lease/original_locks.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "berth/lease/test/scene.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::leasing::original_locks_test {
namespace {

/// The home of this test, until it ends.
class Home {
 public:
  explicit Home(const std::string& path) { ::setenv("HOME", path.c_str(), 1); }
  ~Home() { ::setenv("HOME", usual_.c_str(), 1); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

 private:
  std::string usual_ = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
};

mode_t mode_of(const std::string& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

TEST_CASE("a folder for the locks of an original is for all users, unless it is in the home of one") {
  const ScratchDirectory scratch;
  const Scene scene(1);
  const std::string home = scratch.path("a"), beside = scratch.path("ab");
  for (const std::string& folder : {home, beside}) std::filesystem::create_directory(folder);
  const auto takes_in = [&](const std::string& folder) {
    LocksOfOriginals locks;
    CHECK_FALSE(locks.take({lock_of_gpu_scheduler(folder)}, {"GPU-a"}, scene.source.machine, {}, {}));
    CHECK(static_cast<bool>(locks));
  };
  for (const std::string& without : {std::string(), std::string("/"), std::string("a")}) {
    CAPTURE(without);
    const Home nobodys(without);
    takes_in(beside + "/locks");
    CHECK(mode_of(beside + "/locks") == 0777);
    std::filesystem::remove_all(beside + "/locks");
  }
  for (const std::string& same : {home, home + "/"}) {
    CAPTURE(same);
    const Home own(same);
    takes_in(beside + "/locks");
    CHECK(mode_of(beside + "/locks") == 0777);
    takes_in("~/locks");
    CHECK(mode_of(home + "/locks") == 0700);
    for (const std::string& folder : {home, beside}) std::filesystem::remove_all(folder + "/locks");
  }
}

}  // namespace
}  // namespace berth::leasing::original_locks_test
