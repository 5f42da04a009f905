#include "berth/hub/model/poller_step.h"

#include <doctest/doctest.h>

namespace berth::hub::memory_shares_test {
namespace {

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

}  // namespace
}  // namespace berth::hub::memory_shares_test
