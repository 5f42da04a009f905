#include "berth/sys/file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace berth::sys::tick_test {
namespace {

TEST_CASE("a tick comes again, so that one which comes just before a sleep is not the last") {
  const Tick tick(std::chrono::milliseconds(5));
  for (int sleep = 0; sleep < 3; ++sleep) {
    const timespec long_time{5, 0};
    CHECK(::nanosleep(&long_time, nullptr) == -1);
    CHECK(errno == EINTR);
  }
}

TEST_CASE(
    "a tick comes also where no pending signal is allowed, and one within another leaves that running") {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_SIGPENDING, &none);
    const Tick outer(std::chrono::milliseconds(5));
    {
      const Tick inner(std::chrono::milliseconds(1));
    }
    const timespec long_time{60, 0};
    ::_exit(::nanosleep(&long_time, nullptr) == -1 && errno == EINTR ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

}  // namespace
}  // namespace berth::sys::tick_test
