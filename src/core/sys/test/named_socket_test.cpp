#include "berth/sys/socket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace berth::sys::named_socket_test {
namespace {

/// As long as this lives, this process can open nothing.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const Descriptor lowest(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    const rlimit none{static_cast<rlim_t>(lowest.get()), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("who waits for connections rests where no descriptor is left, and loses none") {
  const auto name = socket_name("test", ::geteuid(), "/", std::to_string(::getpid()));
  REQUIRE(name);
  const Descriptor listening = listen_at(*name);
  REQUIRE(listening);
  CHECK_FALSE(accept_own(listening.get()));
  const Descriptor connected = connect_to(*name);
  REQUIRE(connected);
  {
    const NoDescriptors none;
    const auto began = std::chrono::steady_clock::now();
    CHECK_FALSE(accept_own(listening.get()));
    CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(50));
  }
  CHECK(accept_own(listening.get()));
}

}  // namespace
}  // namespace berth::sys::named_socket_test
