#include "berth/sys/file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace berth::sys::quiet_write_test {
namespace {

TEST_CASE("where nobody reads a write fails and no signal comes, then or later") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  CHECK(write_without_signal(ends[1], "ab", 2) == 2);
  ::close(ends[0]);
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  CHECK(write_without_signal(ends[1], "ab", 2) == -1);
  CHECK(errno == EPIPE);
  sigset_t pending, blocked;
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGPIPE) == 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  CHECK(sigismember(&blocked, SIGPIPE) == 0);
  std::signal(SIGPIPE, before);
  ::close(ends[1]);
}

}  // namespace
}  // namespace berth::sys::quiet_write_test
