#include <doctest/doctest.h>

#include "berth/lab_queue/etcd_client.h"

namespace berth::lab_queue::compaction_test {
namespace {

using namespace std::chrono_literals;
using Instant = Compaction::Instant;

constexpr auto kRenewal = 10s;

TEST_CASE("every ten minutes all is forgotten but the last ten minutes") {
  Compaction compaction;
  Instant now{};
  std::uint64_t revision = 1;
  int times = 0;
  for (const Instant end = now + 24h; now < end; now += kRenewal) {
    compaction.is_at(++revision, now);
    const auto due = compaction.due(now);
    if (!due) continue;
    ++times;
    const auto kept = (revision - *due) * kRenewal;
    CHECK(kept >= 10min);
    CHECK(kept <= 11min);
  }
  CHECK(times >= 130);
  CHECK(times <= 144);
}

TEST_CASE("an agent that has just started, or has heard nothing, lets nothing be forgotten") {
  Compaction compaction;
  CHECK(!compaction.due(Instant{} + 24h));
  compaction.is_at(7, Instant{} + 24h);
  CHECK(!compaction.due(Instant{} + 24h + 10min - 1s));
}

TEST_CASE("after a silence what was heard before it is forgotten, and no more") {
  Compaction compaction;
  compaction.is_at(7, Instant{});
  compaction.is_at(900, Instant{} + 9h);
  CHECK(compaction.due(Instant{} + 9h) == 7);
  CHECK(!compaction.due(Instant{} + 9h));
}

TEST_CASE("what is known of a store that was wiped says nothing of the new one") {
  Compaction compaction;
  compaction.is_at(900, Instant{});
  compaction.is_at(901, Instant{} + 5min);
  compaction.is_at(3, Instant{} + 15min);
  CHECK(!compaction.due(Instant{} + 20min));
  compaction.is_at(950, Instant{} + 20min);
  CHECK(compaction.due(Instant{} + 25min) == 3);
}

}  // namespace
}  // namespace berth::lab_queue::compaction_test
