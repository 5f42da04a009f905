#include "berth/sys/bell.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

namespace berth::sys::bell_test {
namespace {

TEST_CASE("who rings without end keeps nobody taking rings, and no ring is lost") {
  const std::string name = "berth-bell-test-" + std::to_string(::getpid());
  const Bell bell(name);
  REQUIRE(bell.descriptor() >= 0);
  CHECK_FALSE(bell.has_rung());
  // The kernel keeps eleven at least.
  for (int i = 0; i < 9; ++i) ring(name);
  CHECK(bell.has_rung());
  CHECK(bell.has_rung());
  CHECK_FALSE(bell.has_rung());
}

}  // namespace
}  // namespace berth::sys::bell_test
