#include "berth/queue/turn_order.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/queue/plan.h"
#include "berth/verdict/test/machine.h"

namespace berth::turn_order_test {
namespace {

using namespace test;
using Ids = std::vector<std::uint64_t>;

constexpr std::uint32_t kAda = 1, kBob = 2;

Wish wish_of(std::uint32_t uid, unsigned count = 1) {
  return {.id = {}, .uid = uid, .count = count, .turn = 0};
}

/// The wishes by the order of their turns, the first that came called 1.
Ids turns_of(std::vector<Wish> wishes, const GpusByUser& has = {}) {
  for (std::size_t at = 0; at < wishes.size(); ++at) wishes[at].id = TicketId{at + 1};
  Ids ids;
  for (const std::size_t at : order_of_turns(wishes, has)) ids.push_back(wishes[at].id.value);
  return ids;
}

GpusByUser firmly(std::map<std::uint32_t, std::uint64_t> gpus) {
  return {gpus, gpus};
}

TEST_CASE("who has fewer comes first, and among equals who came first") {
  const std::vector<Wish> both{wish_of(kAda), wish_of(kBob)};
  CHECK(turns_of(both) == Ids{1, 2});
  CHECK(turns_of(both, firmly({{kAda, 1}})) == Ids{2, 1});
  CHECK(turns_of(both, firmly({{kAda, 1}, {kBob, 1}})) == Ids{1, 2});
}

TEST_CASE("a user with many wishes is alternated with") {
  CHECK(turns_of({wish_of(kAda), wish_of(kAda), wish_of(kAda), wish_of(kBob), wish_of(kBob)}) ==
        Ids{1, 4, 2, 5, 3});
  CHECK(turns_of({wish_of(kAda, 8), wish_of(kAda), wish_of(kBob), wish_of(kBob)}) == Ids{1, 3, 4, 2});
}

TEST_CASE("those that yield stand behind all others, and what yields counts only among them") {
  Wish sweep = wish_of(kAda);
  sweep.yields = true;
  CHECK(turns_of({sweep, wish_of(kAda), wish_of(kBob)}) == Ids{2, 3, 1});
  const GpusByUser sweeping{{{kAda, 5}}, {}};
  CHECK(turns_of({wish_of(kAda), wish_of(kBob)}, sweeping) == Ids{1, 2});
  Wish bobs = sweep;
  bobs.uid = kBob;
  CHECK(turns_of({sweep, bobs}, sweeping) == Ids{2, 1});
}

TEST_CASE("nobody goes past one that does not keep the fair order") {
  Wish old = wish_of(kAda);
  old.turn.reset();
  const GpusByUser has = firmly({{kAda, 3}});
  CHECK(turns_of({wish_of(kAda), old, wish_of(kBob), wish_of(kAda)}, has) == Ids{1, 2, 3, 4});
  CHECK(turns_of({old, old, wish_of(kAda), wish_of(kBob)}, has) == Ids{1, 2, 4, 3});
}

std::vector<Wish> any_wishes() {
  std::vector<Wish> wishes;
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    Wish one = wish_of(*rc::gen::inRange(1U, 4U), *rc::gen::inRange(1U, 5U));
    one.yields = *rc::gen::inRange(0, 4) == 0;
    if (*rc::gen::inRange(0, 5) == 0) one.turn.reset();
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
  CHECK(rc::check([] {
    const std::vector<Wish> wishes = any_wishes();
    const std::vector<std::size_t> order = order_of_turns(wishes, any_gpus());
    std::vector<std::size_t> sorted = order;
    std::ranges::sort(sorted);
    for (std::size_t at = 0; at < wishes.size(); ++at) RC_ASSERT(sorted[at] == at);
    for (std::size_t first = 0; first < order.size(); ++first) {
      for (std::size_t second = first + 1; second < order.size(); ++second) {
        const Wish& a = wishes[order[first]];
        const Wish& b = wishes[order[second]];
        RC_ASSERT(!a.yields || b.yields);
        const bool keep_their_order = a.yields == b.yields && (a.uid == b.uid || !a.turn || !b.turn);
        RC_ASSERT(!keep_their_order || order[first] < order[second]);
      }
    }
  }));
}

TEST_CASE("of two users who ask for one GPU each, neither is ever two ahead of the other") {
  CHECK(rc::check([] {
    std::vector<Wish> wishes;
    for (int left = *rc::gen::inRange(0, 20); left > 0; --left)
      wishes.push_back(wish_of(*rc::gen::inRange(1U, 3U)));
    std::map<std::uint32_t, std::ptrdiff_t> all, had;
    for (const Wish& wish : wishes) ++all[wish.uid];
    for (const std::size_t at : order_of_turns(wishes, {})) {
      ++had[wishes[at].uid];
      const bool both_wait = had[kAda] < all[kAda] && had[kBob] < all[kBob];
      RC_ASSERT(!both_wait || std::abs(had[kAda] - had[kBob]) <= 1);
    }
  }));
}

TEST_CASE("among equals the number decides") {
  Wish first = wish_of(kAda), second = wish_of(kBob);
  first.turn = 2;
  second.turn = 1;
  CHECK(turns_of({first, second}) == Ids{2, 1});
  second.turn = 2;
  CHECK(turns_of({first, second}) == Ids{1, 2});
}

TEST_CASE("a number is beyond what its user has or waits for, and not before the last that was granted") {
  CHECK(next_turn(kAda, std::vector<Numbered>{}) == 0);
  CHECK(next_turn(kAda, std::vector<Numbered>{{kAda, 2, 5}}) == 7);
  CHECK(next_turn(kBob, std::vector<Numbered>{{kAda, 2, 5}, {kAda, 2, 7}}) == 5);
  CHECK(next_turn(kBob, std::vector<Numbered>{{kAda, 2, 3, true}, {kAda, 2, 5}}) == 3);
  CHECK(next_turn(kBob, std::vector<Numbered>{{kAda, 1, kLastTurn, true}}) == kLastTurn);
  CHECK(next_turn(kAda, std::vector<Numbered>{{kAda, 1, kLastTurn, true}}) == kLastTurn);
}

// In a plan.

Ticket ticket_of(std::uint32_t uid, std::uint64_t id, std::vector<std::string> candidates = {uuid_of(0)}) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.uid = uid;
  ticket.turn = 0;
  ticket.candidates = std::move(candidates);
  return ticket;
}

Ticket lease_of(std::uint32_t uid, std::uint64_t id, unsigned device) {
  Ticket lease = ticket_of(uid, id);
  lease.phase = TicketPhase::granted;
  lease.devices = {uuid_of(device)};
  return lease;
}

Plan planned(std::vector<Ticket> tickets, std::uint64_t me, const std::set<TicketId>& passed_over = {}) {
  Request request;
  request.count = 1;
  Ledger ledger;
  ledger.tickets = std::move(tickets);
  const auto found = plan(ledger, machine(2), request, TicketId{me}, passed_over);
  REQUIRE(found.has_value());
  return *found;
}

TEST_CASE(
    "a later request of one who has less takes what is free, and the earlier one looks after it alone") {
  const std::vector<Ticket> line{lease_of(kAda, 1, 1), ticket_of(kAda, 5), ticket_of(kBob, 6)};
  CHECK(planned(line, 6) == Plan(Granted{{{uuid_of(0)}, {}}}));
  // Whoever came first is whom the others rely on, so it relies on nobody.
  CHECK(planned(line, 5) == Plan(Behind{TicketId{6}, {uuid_of(0)}}));
}

TEST_CASE("who came later sleeps behind who came earlier, whosever turn is first") {
  const std::vector<Ticket> line{lease_of(kAda, 1, 1), ticket_of(kAda, 5), ticket_of(kBob, 6),
                                 ticket_of(kBob, 7)};
  CHECK(planned(line, 7) == Plan(Behind{TicketId{6}}));
  CHECK(planned(line, 7, {TicketId{6}}) == Plan(Granted{{{uuid_of(0)}, {}}}));
}

TEST_CASE("nobody relies on one who may rely on him") {
  CHECK(rc::check([] {
    std::vector<Ticket> line;
    for (unsigned device = 0; device < 2; ++device) {
      if (*rc::gen::arbitrary<bool>())
        line.push_back(lease_of(*rc::gen::inRange(1U, 4U), device + 1, device));
    }
    const auto count = *rc::gen::inRange<std::uint64_t>(2, 8);
    for (std::uint64_t id = 10; id < 10 + count; ++id) {
      line.push_back(ticket_of(*rc::gen::inRange(1U, 4U), id, {uuid_of(0), uuid_of(1)}));
      line.back().count = *rc::gen::inRange(1U, 3U);
      if (*rc::gen::inRange(0, 4) == 0) line.back().turn.reset();
    }
    for (std::uint64_t id = 10; id < 10 + count; ++id) {
      const Plan found = planned(line, id);
      const auto* behind = std::get_if<Behind>(&found);
      if (behind == nullptr) continue;
      const bool is_circular = id < behind->rival.value;
      RC_ASSERT(!is_circular || behind->unguarded.size() == 2);
    }
  }));
}

}  // namespace
}  // namespace berth::turn_order_test
