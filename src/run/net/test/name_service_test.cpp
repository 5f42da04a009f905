#include "berth/net/background_work.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

namespace berth::net::name_service_test {
namespace {

using namespace std::chrono_literals;

/// As at the limit of threads: as long as this lives, no stack fits into memory.
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&usual_);
    pthread_attr_t huge{};
    ::pthread_attr_init(&huge);
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 60U);
    REQUIRE(::pthread_setattr_default_np(&huge) == 0);
    ::pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&usual_);
    ::pthread_attr_destroy(&usual_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t usual_{};
};

TEST_CASE("a user for whom there was no thread is asked about again") {
  Askers askers;
  {
    const NoThreads none;
    CHECK_NOTHROW(CHECK_FALSE(askers.find(::geteuid())));
  }
  std::optional<Asker> found;
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!found && std::chrono::steady_clock::now() < until) {
    found = askers.find(::geteuid());
    std::this_thread::sleep_for(1ms);
  }
  REQUIRE(found.has_value());
  CHECK(found->uid == ::geteuid());
}

}  // namespace
}  // namespace berth::net::name_service_test
