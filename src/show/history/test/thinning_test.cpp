#include "berth/history/model/sample.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <vector>

namespace berth::history::thinning_test {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

Thinning plan(std::optional<std::int64_t> fine, std::optional<std::int64_t> coarse,
              std::optional<std::int64_t> accounts, std::int64_t now_s = kNow) {
  return thinning({{fine, coarse}, accounts}, now_s);
}

TEST_CASE("what is young stays as it is") {
  CHECK(plan({}, {}, {}) == Thinning{});
  CHECK(plan(kNow - 3 * kDay, kNow - 56 * kDay, kNow - 400 * kDay) == Thinning{});
}

TEST_CASE("what has grown old goes in whole steps of what it becomes") {
  const Thinning thinned = plan(kNow - 3 * kDay - 700, kNow - 56 * kDay - 700, kNow - 400 * kDay - 7200);
  CHECK(thinned.samples[0] == Span{kNow - 3 * kDay - 900, kNow - 3 * kDay});
  CHECK(thinned.samples[0].from_s % kTiers[1].step_s == 0);
  CHECK(thinned.samples[1] == Span{kNow - 56 * kDay - 900, kNow - 56 * kDay});
  CHECK(thinned.accounts.to_s % 3600 == 0);
  CHECK(thinned.accounts.to_s > kNow - 400 * kDay - 7200);
  CHECK(thinned.accounts.to_s <= kNow - 400 * kDay);
}

TEST_CASE("a clock that is years ahead costs an hour of the oldest at a time") {
  const Thinning thinned = plan(kNow - kDay, kNow - 50 * kDay, kNow - 300 * kDay, kNow + 10'000 * kDay);
  for (const Span& span : {thinned.samples[0], thinned.samples[1], thinned.accounts})
    CHECK(span.to_s - span.from_s <= kThinnedAtOnce);
}

TEST_CASE("a clock that is years behind costs nothing") {
  CHECK(plan(kNow, kNow, kNow, 0) == Thinning{});
}

TEST_CASE("thinning again and again keeps up with what is written, and more") {
  CHECK(kThinnedAtOnce >= 2 * kThinningEvery);
}

TEST_CASE("when the file comes near to its bound, what there is most of loses its oldest") {
  constexpr std::int64_t kMost = 1 << 20;
  CHECK(to_forget({kMost / 2, {100, 10}, {10, 10, 10}}, kMost) == std::nullopt);
  CHECK(to_forget({kMost, {100, 10}, {10, 10, 10}}, kMost) == Kind(std::size_t{0}));
  CHECK(to_forget({kMost, {10, 100}, {10, 10, 10}}, kMost) == Kind(std::size_t{1}));
  CHECK(to_forget({kMost, {10, 10}, {100, 10, 10}}, kMost) == Kind(Account::lease));
  CHECK(to_forget({kMost, {10, 10}, {10, 50, 100}}, kMost) == Kind(Account::job_hour));
}

TEST_CASE("of what users have, the user with the most loses rows, until others have as many") {
  using Rows = std::map<std::int64_t, std::int64_t>;
  CHECK(rows_to_drop({{1, 10}, {2, 1000}}, 100) == Rows{{2, 100}});
  CHECK(rows_to_drop({}, 100) == Rows{});
  CHECK(rows_to_drop({{1, 3}}, 100) == Rows{{1, 3}});
  const Rows both = rows_to_drop({{1, 100}, {2, 100}, {3, 5}}, 100);
  CHECK(both.at(1) + both.at(2) == 100);
  CHECK(std::abs(both.at(1) - both.at(2)) <= 13);
}

TEST_CASE("what no span has is told once, also where spans overlap") {
  const Span whole{100, 200};
  const auto uncovered = [&](const std::vector<Span>& spans) { return uncovered_s(spans, whole); };
  CHECK(uncovered({}) == 100);
  CHECK(uncovered({{100, 200}}) == 0);
  CHECK(uncovered({{0, 300}}) == 0);
  CHECK(uncovered({{0, 110}, {120, 150}, {190, 300}}) == 10 + 40);
  CHECK(uncovered({{100, 180}, {110, 120}, {150, 190}}) == 10);
  CHECK(uncovered({{300, 400}}) == 100);
}

}  // namespace
}  // namespace berth::history::thinning_test
