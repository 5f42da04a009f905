#include "berth/sys/process.h"

#include <doctest/doctest.h>

namespace berth::sys::resource_limits_test {
namespace {

TEST_CASE("a command gets the limits that were kept, and none above our hard one") {
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  const PossibleLimits possible = possible_limits({"nofile=20", "core=0", "nofile=unlimited"}, {});
  REQUIRE(possible.limits.soft.size() == 3);
  CHECK(possible.limits.soft[0].resource == RLIMIT_NOFILE);
  CHECK(possible.limits.soft[0].most == 20);
  CHECK(possible.limits.soft[1].resource == RLIMIT_CORE);
  CHECK(possible.limits.soft[2].most == files.rlim_max);
  CHECK(possible.less.size() == (files.rlim_max == RLIM_INFINITY ? 0 : 1));
}

TEST_CASE("what is our own limit is in reach") {
  const auto own = soft_limits();
  CHECK(own.size() == 10);
  const PossibleLimits possible = possible_limits(own, ::getpriority(PRIO_PROCESS, 0));
  CHECK(possible.limits.soft.size() == own.size());
  CHECK(possible.less.empty());
  CHECK(!possible.limits.nice);
}

TEST_CASE("a limit of another version is ignored") {
  for (const char* text : {"", "=", "nofile", "nofile=", "nofile=x", "nofile=1k", "nofile=-1", "magic=3"})
    CHECK_MESSAGE(possible_limits({text}, {}).limits.soft.empty(), text);
}

}  // namespace
}  // namespace berth::sys::resource_limits_test
