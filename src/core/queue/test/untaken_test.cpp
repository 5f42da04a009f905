// A request passes those before it that do not take what is free.
#include <doctest/doctest.h>

#include "berth/queue/acquisition.h"
#include "berth/queue/test/asker.h"

namespace berth::acquisition::untaken_test {
namespace {

constexpr std::uint32_t kAda = 1001;
constexpr std::uint32_t kBob = 1002;

std::vector<AbleBefore> ids(std::initializer_list<std::uint64_t> values) {
  std::vector<AbleBefore> found;
  for (const std::uint64_t value : values) found.push_back({TicketId{value}, 1000});
  return found;
}

// The tickets 1, 2 and so on, of these users.
std::vector<AbleBefore> of_users(std::initializer_list<std::uint32_t> uids) {
  std::vector<AbleBefore> found;
  for (const std::uint32_t uid : uids) found.push_back({TicketId{found.size() + 1}, uid});
  return found;
}

// What is known
// --------------------------------------------------------------------------------------------

TEST_CASE("whoever leaves its turn at each look is known since the first of them") {
  auto seen = seen_again({}, ids({1, 2}), 0s);
  seen = seen_again(seen, ids({1, 2, 3}), 5s);
  const auto turns = ids({1, 2, 3});
  CHECK(seen == std::vector<PassedUpStart>{{turns[0], 0s}, {turns[1], 0s}, {turns[2], 5s}});
}

TEST_CASE("when one has left, the time of those behind it begins anew") {
  const auto seen = seen_again(seen_again({}, ids({1, 2, 3}), 0s), ids({1, 3}), 5s);
  const auto turns = ids({1, 3});
  CHECK(seen == std::vector<PassedUpStart>{{turns[0], 0s}, {turns[1], 5s}});
  CHECK(seen_again(seen, {}, 6s).empty());
}

TEST_CASE("the second has time to notice the first, and the third to notice both") {
  const auto seen = seen_again({}, of_users({kAda, kBob, 1003}), 0s);
  const auto silent = [&](milliseconds now) { return that_do_not_answer(seen, now, 7s).size(); };
  CHECK(silent(7s - 1ms) == 0);
  CHECK(silent(7s) == 1);
  CHECK(silent(14s - 1ms) == 1);
  CHECK(silent(14s) == 2);
  CHECK(silent(21s) == 3);
}

TEST_CASE("two of a user who do not answer are judged, and the user's next ones are passed with them") {
  const auto silent = [](std::initializer_list<std::uint32_t> users, milliseconds now) {
    return that_do_not_answer(seen_again({}, of_users(users), 0s), now, 7s).size();
  };
  CHECK(silent({kAda, kAda, kAda, kAda, kAda}, 7s) == 1);
  CHECK(silent({kAda, kAda, kAda, kAda, kAda}, 14s - 1ms) == 1);
  CHECK(silent({kAda, kAda, kAda, kAda, kAda}, 14s) == 5);
  SUBCASE("one of another user among them has its time, and the row ends with it until then") {
    CHECK(silent({kAda, kAda, kAda, kBob, kAda}, 14s) == 3);
    CHECK(silent({kAda, kAda, kAda, kBob, kAda}, 21s - 1ms) == 3);
    CHECK(silent({kAda, kAda, kAda, kBob, kAda}, 21s) == 5);
  }
  SUBCASE("each user is judged twice, in whatever order they stand") {
    CHECK(silent({kAda, kBob, kAda, kBob, kAda, kBob, 1003}, 21s) == 3);
    CHECK(silent({kAda, kBob, kAda, kBob, kAda, kBob, 1003}, 28s) == 6);
    CHECK(silent({kAda, kBob, kAda, kBob, kAda, kBob, 1003}, 35s) == 7);
  }
  SUBCASE("also those that have only now been seen") {
    const auto seen =
        seen_again(seen_again({}, of_users({kAda, kAda}), 0s), of_users({kAda, kAda, kAda, kBob}), 14s);
    CHECK(that_do_not_answer(seen, 14s, 7s) == std::set{TicketId{1}, TicketId{2}, TicketId{3}});
  }
}

TEST_CASE("who looks first waits for each of its own user, and for two at most of another") {
  CHECK(count_to_wait_for(of_users({kAda, kAda, kAda, kBob}), 1003, 0) == 3);
  CHECK(count_to_wait_for(of_users({kAda, kAda, kAda, kBob}), kAda, 0) == 4);
  CHECK(count_to_wait_for(of_users({kAda, kBob, kAda}), kBob, 90) == 3);
  CHECK(count_to_wait_for(of_users({kBob, kAda}), kAda, 90) == 92);
  CHECK(count_to_wait_for({}, kAda, 90) == 0);
}

TEST_CASE("those have a turn that could start, each if those before it take nothing") {
  Facts facts = machine(2);
  Ticket both = waiter(2);
  both.count = 2;
  const Ticket one = waiter(3);
  const Ticket mine = waiter(kMe);
  const auto before = [&](std::vector<Ticket> tickets, std::set<TicketId> skipped = {}) {
    return able_before(mine.id, books(std::move(tickets)), facts, 0, skipped, FreeBy::driver);
  };
  CHECK(before({both, one, mine}) == ids({2, 3}));
  CHECK(before({both, one, mine}, {both.id}) == ids({3}));
  SUBCASE("one that finds too little has none, and what is kept for it is not left by anybody") {
    CHECK_FALSE(before({lease(1, uuid_of(0)), both, mine}).has_value());
  }
  SUBCASE("also where nobody fills gaps") {
    facts.policy.queue.backfill = false;
    CHECK(before({both, one, mine}) == ids({2, 3}));
    CHECK_FALSE(before({lease(1, uuid_of(0)), both, mine}).has_value());
  }
}

// What is done
// --------------------------------------------------------------------------------------------

// A device is free, and the ticket before it does not take it.
Asker beside_a_free_device() {
  Asker asker = behind_one();
  asker.leases = {lease(1, uuid_of(0))};
  CHECK(is<SleepBehind>(asker.goes_on()));
  return asker;
}

// To the sleep after a tick, or to a lease.
Action ticks(Asker& asker, milliseconds now) {
  asker.now = now;
  asker.tell(Ticked{});
  return asker.goes_on();
}

TEST_CASE("whoever leaves a free device is passed over, with and without gaps to fill") {
  Asker asker = behind_one();
  bool backfill = true;
  SUBCASE("with") {}
  SUBCASE("without") {
    backfill = false;
  }
  asker.facts.policy.queue.backfill = backfill;
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  CHECK(is<SleepBehind>(asker.goes_on()));
  asker.leases.pop_back();
  asker.now = 5s;
  CHECK(asker.tell(Ticked{.skipped = {}, .leases_changed = true}) == Action(EnterGate{}));
  CHECK(is<SleepBehind>(asker.goes_on()));
  CHECK(is<SleepBehind>(ticks(asker, 10s)));
  CHECK(is<Grant>(ticks(asker, 15s)));
}

TEST_CASE("whoever takes it in time is not passed over, and the next one has its time") {
  Asker asker = behind_one();
  asker.leases = {lease(1, uuid_of(0))};
  asker.earlier = {waiter(4), waiter(5)};
  CHECK(is<SleepBehind>(asker.goes_on()));
  // The first has had a lease and has ended.
  asker.earlier = {waiter(5)};
  CHECK(is<SleepBehind>(ticks(asker, 10s)));
  CHECK(is<SleepBehind>(ticks(asker, 15s)));
  CHECK(is<Grant>(ticks(asker, 20s)));
}

TEST_CASE("a user with many tickets that never look costs others no more than with two") {
  Asker asker = behind_one();
  asker.leases = {lease(1, uuid_of(0))};
  asker.mine.uid = kBob;
  asker.earlier.clear();
  for (std::uint64_t id = 2; id < kMe; ++id) asker.earlier.push_back(waiter(id));
  CHECK(is<SleepBehind>(asker.goes_on()));
  for (int at = 1; at <= 5; ++at) CHECK(is<SleepBehind>(ticks(asker, at * 5s)));
  CHECK(is<Grant>(ticks(asker, 30s)));
}

TEST_CASE("what is free only by the leases is left by nobody, and the driver is seldom asked") {
  Asker asker = behind_one();
  asker.leases = {lease(1, uuid_of(0))};
  asker.facts.foreign_locks = {uuid_of(1)};
  CHECK(is<SleepBehind>(asker.goes_on()));
  int looks = 0;
  for (int at = 1; at <= 120; ++at) {
    asker.now = at * 5s;
    if (!is<SleepBehind>(asker.tell(Ticked{}))) {
      while (asker.takes_a_step()) looks += is<Look>(asker.action) ? 1 : 0;
    }
    CHECK(is<SleepBehind>(asker.action));
  }
  CHECK(looks >= 5);
  CHECK(looks <= 25);
}

TEST_CASE("whoever was stopped itself for a while begins anew") {
  Asker asker = beside_a_free_device();
  CHECK(is<SleepBehind>(ticks(asker, 5s)));
  CHECK(is<SleepBehind>(ticks(asker, 60s)));
  CHECK(is<SleepBehind>(ticks(asker, 65s)));
  CHECK(is<Grant>(ticks(asker, 70s)));
}

TEST_CASE("one that is passed over keeps its place, and what is not yet free stays kept for it") {
  Asker asker = beside_a_free_device();
  CHECK(is<SleepBehind>(ticks(asker, 5s)));
  // It wants both from now on.
  asker.earlier[0].count = 2;
  for (int at = 2; at <= 10; ++at) CHECK(is<SleepBehind>(ticks(asker, at * 5s)));
}

}  // namespace
}  // namespace berth::acquisition::untaken_test
