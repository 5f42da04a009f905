// Starts of requests that go by expected run times: told only where many futures agree.
#include "berth/queue/start_forecast.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "berth/queue/standing.h"
#include "berth/verdict/test/machine.h"

namespace berth::start_forecast_test {
namespace {

constexpr Moment kNow = 400'000, kMinute = 60, kHour = 3600;
const QueueRules kRules{.expect = Expect::runs};

/// A device that a lease has, which has lasted for so long already.
struct Lease {
  Moment gone;
  std::optional<Moment> length{};
  std::optional<Moment> expected{};
};

Wish wish(std::uint64_t id, Moment expected, Moment waited = 0) {
  return {.id = {id}, .likely = 3 * expected, .expected = expected, .since = kNow - waited};
}

struct Scene {
  QueueState queue;
  std::vector<Tenure> tenures;

  Scene(std::size_t devices, const std::vector<Lease>& leases) {
    queue.now = kNow;
    queue.room_bytes.assign(devices, 1);
    queue.sets.emplace_back();
    for (std::size_t at = 0; at < devices; ++at) queue.sets[0].push_back(at);
    for (std::size_t at = 0; at < leases.size(); ++at) {
      const Lease& lease = leases[at];
      const TicketId id{at + 1};
      const Moment since = kNow - lease.gone;
      queue.holds.push_back({.device = at, .from = since, .owner = id});
      const auto likely = lease.expected.transform([](Moment expected) { return 3 * expected; });
      tenures.push_back({.id = id,
                         .since = since,
                         .length = lease.length,
                         .likely = lease.length ? std::nullopt : likely,
                         .expected = lease.expected});
    }
  }

  std::vector<std::optional<ExpectedStart>> starts() const {
    return foretold_starts(queue, tenures, {}, kRules);
  }
};

TEST_CASE("a start that hangs on the end of one run is not told, one that is near is") {
  Scene scene(1, {{.gone = 0, .expected = 10 * kHour}});
  scene.queue.wishes = {wish(2, kHour)};
  CHECK_FALSE(scene.starts()[0]);
  // Its time is over, and it is being ended.
  scene = Scene(1, {{.gone = 2 * kHour, .length = 2 * kHour, .expected = 2 * kHour}});
  scene.queue.wishes = {wish(2, kHour)};
  REQUIRE(scene.starts()[0]);
  CHECK(scene.starts()[0]->from - kNow <= kMinute + 1);
  CHECK(scene.starts()[0]->devices == std::vector<std::size_t>{0});
}

TEST_CASE("of many runs one after the other it is better known when they are over") {
  Scene scene(1, {{.gone = kMinute, .expected = kHour}});
  constexpr std::uint64_t kWaiting = 24;
  for (std::uint64_t id = 2; id < 2 + kWaiting; ++id) scene.queue.wishes.push_back(wish(id, kHour));
  const auto starts = scene.starts();
  REQUIRE(starts.back());
  const Moment wait = starts.back()->from - kNow;
  CHECK(wait > kWaiting * kHour / 2);
  CHECK(wait < kWaiting * kHour * 2);
  CHECK(starts == scene.starts());
}

TEST_CASE("whose turn it is by then counts, and not whose it is now") {
  // The device is free within a minute. By then the second is before the first.
  Scene scene(1, {{.gone = kHour, .length = kHour, .expected = kHour}});
  scene.queue.wishes = {wish(2, 10 * kHour, kHour), wish(3, 10 * kMinute, kMinute)};
  scene.queue.wishes[0].since = kNow - 59 * kMinute;
  scene.queue.wishes[1].since = kNow - 58;
  CHECK(scene.starts()[0].has_value() == false);
  REQUIRE(scene.starts()[1].has_value());
  CHECK(scene.starts()[1]->from - kNow <= kMinute + 1);
}

TEST_CASE("a lease of which nothing is known lets nobody be told") {
  Scene scene(2, {{.gone = kHour}, {.gone = kHour}});
  scene.queue.wishes = {wish(3, kHour), wish(4, kHour)};
  CHECK(std::ranges::none_of(scene.starts(), [](const auto& start) { return start.has_value(); }));
}

TEST_CASE("who yields, is skipped, or is far back is told nothing, and keeps nobody") {
  Scene scene(1, {});
  scene.queue.wishes = {wish(1, kHour), wish(2, kHour)};
  scene.queue.wishes[0].skipped = true;
  const auto starts = scene.starts();
  CHECK_FALSE(starts[0]);
  CHECK(starts[1] == ExpectedStart{kNow, {0}});
  scene.queue.wishes[0] = wish(1, kHour);
  scene.queue.wishes[0].yields = true;
  CHECK_FALSE(scene.starts()[0]);
  CHECK(scene.starts()[1] == ExpectedStart{kNow, {0}});
  scene.queue.wishes.clear();
  for (std::uint64_t id = 1; id <= kForeseen + 1; ++id) scene.queue.wishes.push_back(wish(id, kHour));
  CHECK(scene.starts()[kForeseen - 1].has_value());
  CHECK_FALSE(scene.starts()[kForeseen]);
}

TEST_CASE("a lease that yields is over once it has been asked") {
  Scene scene(1, {{.gone = 0, .expected = 10 * kHour}});
  scene.queue.holds[0].leaves = Leaves::when_asked;
  scene.queue.holds[0].left_by = kNow + 30;
  scene.tenures[0].yields = true;
  scene.queue.wishes = {wish(2, kHour)};
  CHECK(scene.starts()[0] == ExpectedStart{kNow + 30, {0}});
}

TEST_CASE("a queue of tickets is foretold by run times where they have them, and by time limits elsewhere") {
  Facts facts = test::machine(1);
  facts.booted_at_s = 1000;
  Ledger ledger;
  Ticket waiting;
  waiting.id = TicketId{2};
  waiting.candidates = {test::uuid_of(0)};
  ledger.tickets = {test::lease(1, test::uuid_of(0)), waiting};
  ledger.tickets[0].granted_boot_s = 0;
  ledger.tickets[0].time_s = 300;
  CHECK(standings(ledger, facts, {}, 50 * kSecond)[0].starts_at_s == 1300);
  ledger.tickets[1].expected_s = 3600;
  CHECK_FALSE(standings(ledger, facts, {}, 50 * kSecond)[0].starts_at_s.has_value());
  const auto start = standings(ledger, facts, {}, 300 * kSecond)[0].starts_at_s;
  REQUIRE(start.has_value());
  CHECK(*start >= 1300);
  CHECK(*start <= 1361);
}

}  // namespace
}  // namespace berth::start_forecast_test
