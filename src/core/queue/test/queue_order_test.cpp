#include "berth/queue/schedule.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::queue_order_test {
namespace {

using namespace test;
using Ids = std::vector<std::uint64_t>;

constexpr std::uint32_t kAda = 1, kBob = 2;

Wish wish_of(std::uint32_t uid, unsigned count = 1) {
  return {.id = {}, .uid = uid, .count = count, .number = fair(0)};
}

/// The wishes by the order of their turns, the first that came called 1.
Ids ordered(std::vector<Wish> wishes, const GpusByUser& has = {}) {
  for (std::size_t at = 0; at < wishes.size(); ++at) wishes[at].id = TicketId{at + 1};
  Ids ids;
  for (const std::size_t at : queue_order(wishes, has, 0)) ids.push_back(wishes[at].id.value);
  return ids;
}

GpusByUser firmly(std::map<std::uint32_t, std::uint64_t> gpus) {
  return {gpus, gpus};
}

TEST_CASE("who has fewer comes first, and among equals who came first") {
  const std::vector<Wish> both{wish_of(kAda), wish_of(kBob)};
  CHECK(ordered(both) == Ids{1, 2});
  CHECK(ordered(both, firmly({{kAda, 1}})) == Ids{2, 1});
  CHECK(ordered(both, firmly({{kAda, 1}, {kBob, 1}})) == Ids{1, 2});
}

TEST_CASE("a user with many wishes is alternated with") {
  CHECK(ordered({wish_of(kAda), wish_of(kAda), wish_of(kAda), wish_of(kBob), wish_of(kBob)}) ==
        Ids{1, 4, 2, 5, 3});
  CHECK(ordered({wish_of(kAda, 8), wish_of(kAda), wish_of(kBob), wish_of(kBob)}) == Ids{1, 3, 4, 2});
}

TEST_CASE("those that yield stand behind all others, and what yields counts only among them") {
  Wish sweep = wish_of(kAda);
  sweep.yields = true;
  CHECK(ordered({sweep, wish_of(kAda), wish_of(kBob)}) == Ids{2, 3, 1});
  const GpusByUser sweeping{{{kAda, 5}}, {}};
  CHECK(ordered({wish_of(kAda), wish_of(kBob)}, sweeping) == Ids{1, 2});
  Wish bobs = sweep;
  bobs.uid = kBob;
  CHECK(ordered({sweep, bobs}, sweeping) == Ids{2, 1});
}

TEST_CASE("nobody goes past one that does not keep the fair order") {
  Wish old = wish_of(kAda);
  old.number.reset();
  const GpusByUser has = firmly({{kAda, 3}});
  CHECK(ordered({wish_of(kAda), old, wish_of(kBob), wish_of(kAda)}, has) == Ids{1, 2, 3, 4});
  CHECK(ordered({old, old, wish_of(kAda), wish_of(kBob)}, has) == Ids{1, 2, 4, 3});
}

std::vector<Wish> any_wishes() {
  std::vector<Wish> wishes;
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    Wish one = wish_of(*rc::gen::inRange(1U, 4U), *rc::gen::inRange(1U, 5U));
    one.yields = *rc::gen::inRange(0, 4) == 0;
    if (*rc::gen::inRange(0, 5) == 0) one.number.reset();
    wishes.push_back(one);
  }
  return wishes;
}

GpusByUser any_gpus() {
  GpusByUser has;
  for (std::uint32_t uid = 1; uid < 4; ++uid) {
    has.firmly[uid] = *rc::gen::inRange(0U, 6U);
    has.in_all[uid] = has.firmly[uid] + *rc::gen::inRange(0U, 3U);
  }
  return has;
}

TEST_CASE("each has one turn, a user's own wishes of a kind keep their order, and nobody goes past the old") {
  holds_for_any([] {
    const std::vector<Wish> wishes = any_wishes();
    const std::vector<std::size_t> order = queue_order(wishes, any_gpus(), 0);
    std::vector<std::size_t> sorted = order;
    std::ranges::sort(sorted);
    for (std::size_t at = 0; at < wishes.size(); ++at) RC_ASSERT(sorted[at] == at);
    for (std::size_t first = 0; first < order.size(); ++first) {
      for (std::size_t second = first + 1; second < order.size(); ++second) {
        const Wish& a = wishes[order[first]];
        const Wish& b = wishes[order[second]];
        RC_ASSERT(!a.yields || b.yields);
        const bool keep_their_order = a.yields == b.yields && (a.uid == b.uid || !a.number || !b.number);
        RC_ASSERT(!keep_their_order || order[first] < order[second]);
      }
    }
  });
}

TEST_CASE("of two users who ask for one GPU each, neither is ever two ahead of the other") {
  holds_for_any([] {
    std::vector<Wish> wishes;
    for (int left = *rc::gen::inRange(0, 20); left > 0; --left)
      wishes.push_back(wish_of(*rc::gen::inRange(1U, 3U)));
    std::map<std::uint32_t, std::ptrdiff_t> all, had;
    for (const Wish& wish : wishes) ++all[wish.uid];
    for (const std::size_t at : queue_order(wishes, {}, 0)) {
      ++had[wishes[at].uid];
      const bool both_wait = had[kAda] < all[kAda] && had[kBob] < all[kBob];
      RC_ASSERT(!both_wait || std::abs(had[kAda] - had[kBob]) <= 1);
    }
  });
}

TEST_CASE("among equals the number decides") {
  Wish first = wish_of(kAda), second = wish_of(kBob);
  first.number = fair(2);
  second.number = fair(1);
  CHECK(ordered({first, second}) == Ids{2, 1});
  second.number = fair(2);
  CHECK(ordered({first, second}) == Ids{1, 2});
}

TEST_CASE("a number is beyond what its user has or waits for, and not before the last that was granted") {
  const auto next = [](std::uint32_t uid, std::vector<Numbered> others) {
    return next_number(QueueOrder::fair, uid, std::move(others));
  };
  CHECK(next(kAda, {}) == fair(0));
  CHECK(next(kAda, {{kAda, 2, fair(5)}}) == fair(7));
  CHECK(next(kBob, {{kAda, 2, fair(5)}, {kAda, 2, fair(7)}}) == fair(5));
  CHECK(next(kBob, {{kAda, 2, fair(3), true}, {kAda, 2, fair(5)}}) == fair(3));
  CHECK(next(kBob, {{kAda, 1, fair(kLastOrderNumber), true}}) == fair(kLastOrderNumber));
  CHECK(next(kAda, {{kAda, 1, fair(kLastOrderNumber), true}}) == fair(kLastOrderNumber));
}

// By response ratio: ages in seconds before kNow.

constexpr Moment kNow = 100'000;
constexpr Moment kNoLongest = kNever;

Wish aged(Moment waited, Moment expected, unsigned count = 1) {
  return {.id = {}, .uid = kAda, .count = count, .expected = expected, .since = kNow - waited};
}

Ids ordered_by_ratio(std::vector<Wish> wishes, Moment longest_wait = kNoLongest, Moment now = kNow,
                     const GpusByUser& has = {}) {
  for (Wish& wish : wishes) wish.longest_wait = longest_wait;
  Ids ids;
  for (const std::size_t at : queue_order(wishes, has, now)) ids.push_back(at + 1);
  return ids;
}

TEST_CASE("who has waited longest in relation to its length comes first, and among equals who came first") {
  CHECK(ordered_by_ratio({aged(3000, 36'000), aged(1000, 600)}) == Ids{2, 1});
  CHECK(ordered_by_ratio({aged(3000, 3600), aged(100, 600)}) == Ids{1, 2});
  CHECK(ordered_by_ratio({aged(1200, 1200), aged(600, 600)}) == Ids{1, 2});
  CHECK(ordered_by_ratio({aged(0, 600), aged(0, 86'400)}) == Ids{1, 2});
  // A clock that goes back makes nobody younger than nothing.
  CHECK(ordered_by_ratio({aged(-50, 600), aged(-9, 60)}) == Ids{1, 2});
}

TEST_CASE("where all are expected to last as long, the order is that of coming") {
  CHECK(ordered_by_ratio({aged(500, 600, 8), aged(400, 600), aged(300, 600, 4), aged(2, 600)}) ==
        Ids{1, 2, 3, 4});
}

TEST_CASE("nobody goes past one that says no time, and he goes past nobody") {
  Wish old = aged(2000, 600);
  old.expected.reset();
  CHECK(ordered_by_ratio({aged(3000, 36'000), old, aged(1000, 600), aged(900, 60)}) == Ids{1, 2, 4, 3});
}

TEST_CASE("those that yield are ordered among themselves, behind all others") {
  Wish sweep = aged(3000, 36'000), quick = aged(2000, 600);
  sweep.yields = quick.yields = true;
  CHECK(ordered_by_ratio({sweep, quick, aged(1, 86'400)}) == Ids{3, 2, 1});
}

TEST_CASE("the one that came first of all comes first once it has waited long enough, and no other does") {
  const std::vector<Wish> queue{aged(9000, 86'400), aged(8000, 86'400), aged(1000, 600)};
  CHECK(ordered_by_ratio(queue) == Ids{3, 1, 2});
  CHECK(ordered_by_ratio(queue, 9000) == Ids{1, 3, 2});
  CHECK(ordered_by_ratio(queue, 9001) == Ids{3, 1, 2});
  CHECK(ordered_by_ratio(queue, 5000) == Ids{1, 3, 2});
  std::vector<Wish> stopped = queue;
  stopped[0].skipped = true;
  CHECK(ordered_by_ratio(stopped, 9000) == Ids{3, 1, 2});
  CHECK(ordered_by_ratio(stopped, 8000) == Ids{2, 3, 1});
}

TEST_CASE("between users fairness decides, and within a user the ratio; numbers belong to the user") {
  Wish large = aged(3000, 86'400, 8), small = aged(2000, 600), bobs = aged(1000, 86'400);
  large.number = fair(0);
  small.number = fair(8);
  bobs.number = fair(4);
  bobs.uid = kBob;
  // Ada's small one goes before her large one, and takes its number; Bob has nothing, as Ada.
  CHECK(ordered_by_ratio({large, small, bobs}) == Ids{2, 3, 1});
  CHECK(ordered_by_ratio({large, small, bobs}, kNoLongest, kNow, firmly({{kAda, 1}})) == Ids{3, 2, 1});
}

std::vector<Wish> any_aged() {
  std::vector<Wish> wishes;
  Moment since = 0;
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    since += *rc::gen::inRange<Moment>(0, 5000);
    Wish one = aged(0, *rc::gen::inRange<Moment>(60, 86'401), *rc::gen::inRange(1U, 9U));
    one.since = since;
    one.yields = *rc::gen::inRange(0, 4) == 0;
    wishes.push_back(one);
  }
  return wishes;
}

bool comes_before_in(const Ids& ids, std::uint64_t a, std::uint64_t b) {
  return std::ranges::find(ids, a) < std::ranges::find(ids, b);
}

TEST_CASE("one wish more changes nothing between two others, and two change their order at most once") {
  holds_for_any([] {
    std::vector<Wish> wishes = any_aged();
    const Moment now = *rc::gen::inRange<Moment>(0, 200'000);
    const Moment later = now + *rc::gen::inRange<Moment>(0, 200'000);
    const Moment last = later + *rc::gen::inRange<Moment>(0, 200'000);
    const Ids before = ordered_by_ratio(wishes, kNoLongest, now);
    const Ids then = ordered_by_ratio(wishes, kNoLongest, later);
    const Ids at_last = ordered_by_ratio(wishes, kNoLongest, last);
    for (std::uint64_t a = 1; a <= wishes.size(); ++a) {
      for (std::uint64_t b = 1; b < a; ++b) {
        // Only of those that have come.
        if (wishes[a - 1].since > now) continue;
        const bool first = comes_before_in(before, a, b), second = comes_before_in(then, a, b),
                   third = comes_before_in(at_last, a, b);
        RC_ASSERT(first == second || second == third);
      }
    }
    if (wishes.empty()) return;
    wishes.pop_back();
    const Ids fewer = ordered_by_ratio(wishes, kNoLongest, now);
    for (std::uint64_t a = 1; a <= wishes.size(); ++a) {
      for (std::uint64_t b = 1; b < a; ++b)
        RC_ASSERT(comes_before_in(fewer, a, b) == comes_before_in(before, a, b));
    }
  });
}

TEST_CASE("if all are expected to last as long, each order is as if nothing were expected") {
  holds_for_any([] {
    std::vector<Wish> wishes = any_aged();
    for (Wish& one : wishes) one.expected = 3600;
    const Ids by_ratio = ordered_by_ratio(wishes, *rc::gen::element(kNoLongest, Moment{1000}), 300'000);
    for (Wish& one : wishes) one.expected.reset();
    RC_ASSERT(by_ratio == ordered_by_ratio(wishes, kNoLongest, 300'000));
  });
}

TEST_CASE("an age and a length that are as large as can be are told apart") {
  const Moment ms = 1000, years = 20LL * 365 * 86'400 * ms;
  CHECK(ordered_by_ratio({aged(years, 86'400 * ms), aged(years, 86'399 * ms)}) == Ids{2, 1});
}

// In a plan.

Ticket ticket_of(std::uint32_t uid, std::uint64_t id, std::vector<std::string> candidates = {uuid_of(0)}) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.uid = uid;
  ticket.number = fair(0);
  ticket.candidates = std::move(candidates);
  return ticket;
}

Ticket lease_of(std::uint32_t uid, std::uint64_t id, unsigned device) {
  Ticket lease = ticket_of(uid, id);
  lease.phase = TicketPhase::granted;
  lease.devices = {uuid_of(device)};
  return lease;
}

Plan planned(std::vector<Ticket> tickets, std::uint64_t me, const std::set<TicketId>& skipped = {}) {
  Request request;
  request.count = 1;
  Ledger ledger;
  ledger.tickets = std::move(tickets);
  const auto found = plan(ledger, machine(2), request, TicketId{me}, skipped);
  REQUIRE(found.has_value());
  return *found;
}

TEST_CASE(
    "a later request of one who has less takes what is free, and the earlier one looks after it alone") {
  const std::vector<Ticket> queue{lease_of(kAda, 1, 1), ticket_of(kAda, 5), ticket_of(kBob, 6)};
  CHECK(planned(queue, 6) == Plan(Granted{{{uuid_of(0)}, {}}}));
  // Whoever came first is whom the others rely on, so it relies on nobody.
  CHECK(planned(queue, 5) == Plan(Behind{TicketId{6}, {uuid_of(0)}}));
}

TEST_CASE("who came later sleeps behind who came earlier, whosever turn is first") {
  const std::vector<Ticket> queue{lease_of(kAda, 1, 1), ticket_of(kAda, 5), ticket_of(kBob, 6),
                                  ticket_of(kBob, 7)};
  CHECK(planned(queue, 7) == Plan(Behind{TicketId{6}}));
  CHECK(planned(queue, 7, {TicketId{6}}) == Plan(Granted{{{uuid_of(0)}, {}}}));
}

TEST_CASE("nobody relies on one who may rely on him") {
  holds_for_any([] {
    std::vector<Ticket> queue;
    for (unsigned device = 0; device < 2; ++device) {
      if (*rc::gen::arbitrary<bool>())
        queue.push_back(lease_of(*rc::gen::inRange(1U, 4U), device + 1, device));
    }
    const auto count = *rc::gen::inRange<std::uint64_t>(2, 8);
    for (std::uint64_t id = 10; id < 10 + count; ++id) {
      queue.push_back(ticket_of(*rc::gen::inRange(1U, 4U), id, {uuid_of(0), uuid_of(1)}));
      queue.back().count = *rc::gen::inRange(1U, 3U);
      if (*rc::gen::inRange(0, 4) == 0) queue.back().number.reset();
    }
    for (std::uint64_t id = 10; id < 10 + count; ++id) {
      const Plan found = planned(queue, id);
      const auto* behind = std::get_if<Behind>(&found);
      if (behind == nullptr) continue;
      const bool is_circular = id < behind->rival.value;
      RC_ASSERT((!is_circular || behind->unguarded.size() == 2));
    }
  });
}

}  // namespace
}  // namespace berth::queue_order_test
