#include "berth/device/closest_devices.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <tuple>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::closest_devices_test {
namespace {

using Set = std::vector<std::size_t>;

TEST_CASE("a pair scores by the interval of its level and by its NVLinks") {
  struct Row {
    unsigned level;
    unsigned nvlinks;
    int score;
  };
  for (const Row& row : {Row{0, 0, 60}, Row{10, 0, 50}, Row{20, 0, 40}, Row{30, 0, 30}, Row{40, 0, 20},
                         Row{50, 0, 10}, Row{5, 0, 50}, Row{11, 0, 40}, Row{45, 0, 10}, Row{70, 0, 10},
                         Row{50, 18, 18 * kNvlinkScore + 10}, Row{10, 2, 2 * kNvlinkScore + 50}}) {
    CHECK(pair_score(Link{row.level, row.nvlinks}) == row.score);
  }
}

int inside(const PairScores& scores, const Set& set) {
  int sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t j = i + 1; j < set.size(); ++j) sum += scores.at(set[i], set[j]);
  }
  return sum;
}

Set rest_of(const PairScores& scores, const Set& set) {
  Set rest;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::find(set.begin(), set.end(), i) == set.end()) rest.push_back(i);
  }
  return rest;
}

/// Tries each set in lexical order, and says so in as few words as possible.
Set by_brute_force(const PairScores& scores, std::size_t count) {
  Set best, set;
  const auto worth = [&](const Set& s) {
    const int stays = inside(scores, rest_of(scores, s));
    return std::tuple(inside(scores, s) / kNvlinkScore, stays / kNvlinkScore, inside(scores, s), stays);
  };
  const auto extend = [&](const auto& self, std::size_t from) -> void {
    if (set.size() == count) {
      if (best.empty() || worth(set) > worth(best)) best = set;
      return;
    }
    for (std::size_t i = from; i < scores.size(); ++i) {
      set.push_back(i);
      self(self, i + 1);
      set.pop_back();
    }
  };
  extend(extend, 0);
  return best;
}

PairScores random_scores(std::size_t size) {
  PairScores scores(size);
  // Few different values, so that ties are common.
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = a + 1; b < size; ++b)
      scores.set(a, b, *rc::gen::element(10, 20, 20, 50, 2 * kNvlinkScore + 60));
  }
  return scores;
}

/// Two boards of four with four NVLinks within, nothing between: a DGX in small.
PairScores two_boards(std::size_t size) {
  PairScores scores(size);
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = a + 1; b < size; ++b) scores.set(a, b, a / 4 == b / 4 ? 450 : 10);
  }
  return scores;
}

TEST_CASE("a set is close in itself, leaves the rest close, and has the lowest indices") {
  CHECK(best_connected(two_boards(8), 4) == Set{0, 1, 2, 3});
  CHECK(best_connected(two_boards(8), 2) == Set{0, 1});
  CHECK(best_connected(two_boards(6), 2) == Set{4, 5});  // the half board, so that the whole one stays whole
  CHECK(best_connected(two_boards(7), 3) == Set{4, 5, 6});
  CHECK(best_connected(two_boards(8), 8) == Set{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(best_connected(two_boards(8), 0).empty());
  CHECK(best_connected(PairScores(5), 3) == Set{0, 1, 2});
  PairScores crossed(4);
  crossed.set(0, 3, 100);
  crossed.set(1, 2, 100);
  CHECK(best_connected(crossed, 2) == Set{0, 3});
}

TEST_CASE("pairs stay pairs where a pair and a lone device do") {
  // Pairs by an NVLink; the first four devices are on one CPU, the others on another. Device 7 is
  // not there.
  PairScores scores(7);
  for (std::size_t a = 0; a < 7; ++a) {
    for (std::size_t b = a + 1; b < 7; ++b)
      scores.set(a, b, (a / 4 == b / 4 ? 30 : 10) + (a / 2 == b / 2 ? kNvlinkScore : 0));
  }
  CHECK(best_connected(scores, 1) == Set{6});
  CHECK(best_connected(scores, 3) == Set{4, 5, 6});
  CHECK(best_connected(scores, 4) == Set{0, 1, 2, 3});
  // Also where the lone one is the farther one.
  for (const std::size_t near : {4, 5}) scores.set(near, 6, 0);
  CHECK(best_connected(scores, 3) == Set{0, 1, 6});
}

TEST_CASE("a single device is the one that others miss least") {
  CHECK(least_connected(two_boards(6)) == 4);
  CHECK(least_connected(two_boards(8)) == 0);
  CHECK(least_connected(PairScores(1)) == 0);
}

TEST_CASE("the search agrees with trying each set") {
  holds_for_any("up to 10 devices, any number of them", [] {
    const auto size = *rc::gen::inRange<std::size_t>(1, 11);
    const auto count = *rc::gen::inRange<std::size_t>(1, size + 1);
    const PairScores scores = random_scores(size);
    RC_ASSERT(best_connected(scores, count) == by_brute_force(scores, count));
  });
}

TEST_CASE("16 devices are still searched exactly, on both halves of the tables") {
  PairScores scores = two_boards(16);
  scores.set(7, 8, 2000);
  scores.set(8, 15, 2000);
  CHECK(best_connected(scores, 3) == by_brute_force(scores, 3));
  CHECK(best_connected(scores, 3) == Set{7, 8, 15});
  CHECK(best_connected(two_boards(16), 8) == Set{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("beyond 16 devices a board is still found, and no single exchange would better the set") {
  CHECK(best_connected(two_boards(32), 8) == Set{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(best_connected(two_boards(18), 2) == Set{16, 17});
  holds_for_any("17 to 24 devices", [] {
    const auto size = *rc::gen::inRange<std::size_t>(17, 25);
    const auto count = *rc::gen::inRange<std::size_t>(1, size);
    const PairScores scores = random_scores(size);
    const Set found = best_connected(scores, count);
    RC_ASSERT(found.size() == count);
    RC_ASSERT(std::is_sorted(found.begin(), found.end()));
    for (const std::size_t in : rest_of(scores, found)) {
      for (std::size_t out = 0; out < count; ++out) {
        Set exchanged = found;
        exchanged[out] = in;
        RC_ASSERT(inside(scores, exchanged) / kNvlinkScore <= inside(scores, found) / kNvlinkScore);
      }
    }
  });
}

}  // namespace
}  // namespace berth::closest_devices_test
