#include "berth/hub/model/bounds.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth::hub::bounds_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("after the first time agents are asked one by one, evenly over the interval") {
  CHECK(pause_before_second(1s, 0, 1000) == 1ms);
  CHECK(pause_before_second(1s, 499, 1000) == 500ms);
  CHECK(pause_before_second(5s, 999, 1000) == 5s);
}

TEST_CASE("of many agents less is read of each") {
  CHECK(most_of_answer(0) == 1U << 20U);
  CHECK(most_of_answer(32) == 1U << 20U);
  CHECK(most_of_answer(33) == 256U << 10U);
  CHECK(most_of_answer(10'000) == 256U << 10U);
}

TEST_CASE("what hosts tell together stays within bounds, and no host takes the share of another") {
  constexpr std::size_t kMiB = 1U << 20U;
  const HostShares shares(64);
  CHECK(shares.beyond_share(kMiB / 8) == 0);
  CHECK(shares.beyond_share(kMiB) == 4 * kMiB - kMiB / 2);
  CHECK(shares.has_room(kMiB / 8, 32 * kMiB));
  CHECK(!shares.has_room(kMiB / 8 + 1, 32 * kMiB));
  CHECK(shares.has_room(kMiB, 28 * kMiB));
  CHECK(!shares.has_room(kMiB, 29 * kMiB));
  CHECK(HostShares(0).has_room(kMiB, 0));
}

TEST_CASE("a host that does not answer is asked less and less often, and not together with others") {
  CHECK(pause_after(5s, 0, 0.5) == 5s);
  CHECK(pause_after(5s, 1, 0.5) == 5s);
  CHECK(pause_after(5s, 2, 0.5) == 10s);
  CHECK(pause_after(5s, 3, 0.5) == 20s);
  CHECK(pause_after(5s, 4, 0.5) == 30s);
  CHECK(pause_after(5s, 4'000'000'000, 0.5) == 30s);
  CHECK(pause_after(300s, 9, 0.5) == 300s);
  CHECK(rc::check("within bounds, and never the same for all", [](unsigned failures) {
    const auto soon = pause_after(1s, failures, 0);
    const auto late = pause_after(1s, failures, 0.999);
    RC_ASSERT(soon >= 750ms);
    RC_ASSERT(late <= 40s);
    RC_ASSERT(failures < 2 || soon < late);
  }));
}

}  // namespace
}  // namespace berth::hub::bounds_test
