#include "berth/sys/tick.h"

#include <doctest/doctest.h>
#include <time.h>

#include <cerrno>

namespace berth::sys {
namespace {

TEST_CASE("a tick comes again, so that one which comes just before a sleep is not the last") {
  const Tick tick(std::chrono::milliseconds(5));
  for (int sleep = 0; sleep < 3; ++sleep) {
    const timespec long_time{5, 0};
    CHECK(::nanosleep(&long_time, nullptr) == -1);
    CHECK(errno == EINTR);
  }
}

}  // namespace
}  // namespace berth::sys
