#include "berth/queue/standing.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "berth/queue/schedule.h"
#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::preemption_test {
namespace {

using namespace test;

constexpr std::int64_t kNowS = 100'000;
constexpr Moment kNow = kNowS * kSecond;

Ticket yielder(std::uint64_t id, std::vector<unsigned> devices, std::int64_t since_s) {
  Ticket ticket = lease(id, uuid_of(devices.front()));
  ticket.devices.clear();
  for (const unsigned device : devices) ticket.devices.push_back(uuid_of(device));
  ticket.candidates = ticket.devices;
  ticket.since_s = since_s;
  ticket.granted_boot_s = kNowS - 1000 + since_s;
  ticket.yield_s = 30;
  return ticket;
}

std::vector<std::uint64_t> ended(const Ledger& ledger, unsigned gpus) {
  std::vector<std::uint64_t> ids;
  for (const Preemption& yield : preemptions(ledger, machine(gpus), kNow)) ids.push_back(yield.lease.value);
  std::ranges::sort(ids);
  return ids;
}

using Ids = std::vector<std::uint64_t>;

TEST_CASE("who yields for whom") {
  const Ticket one = yielder(1, {0}, 10);
  const Ticket two = yielder(2, {1}, 20);
  Ledger ledger;
  ledger.tickets = {one, two};

  SUBCASE("nobody, while nobody waits") {
    CHECK(ended(ledger, 2).empty());
  }
  SUBCASE("the youngest, where one is enough") {
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    CHECK(ended(ledger, 2) == Ids{2});
    CHECK(preemptions(ledger, machine(2), kNow).front().waiter == TicketId{9});
  }
  SUBCASE("the one that has what is wanted") {
    ledger.tickets.push_back(wants(9, 1, {0}));
    CHECK(ended(ledger, 2) == Ids{1});
  }
  SUBCASE("both for one that wants two") {
    ledger.tickets.push_back(wants(9, 2, {0, 1}));
    CHECK(ended(ledger, 2) == Ids{1, 2});
  }
  SUBCASE("one for each that waits") {
    ledger.tickets.push_back(wants(8, 1, {0, 1}));
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    CHECK(ended(ledger, 2) == Ids{1, 2});
  }
  SUBCASE("none where all together would not do") {
    ledger.tickets[0].yield_s.reset();
    ledger.tickets.push_back(wants(9, 2, {0, 1}));
    CHECK(ended(ledger, 2).empty());
  }
  SUBCASE("none for one that could start anyway") {
    ledger.tickets.push_back(wants(9, 1, {0, 1, 2}));
    CHECK(ended(ledger, 3).empty());
  }
  SUBCASE("none for one that yields itself") {
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    ledger.tickets.back().yield_s = 30;
    CHECK(ended(ledger, 2).empty());
  }
  SUBCASE("none for one whose own conditions hold it back") {
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    ledger.tickets.back().held_back = true;
    CHECK(ended(ledger, 2).empty());
  }
  SUBCASE("none beside one that is ending for it already") {
    ledger.tickets[0].ending = true;
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    CHECK(ended(ledger, 2).empty());
  }
  SUBCASE("none beside one that has ended and whose memory is not back") {
    ledger.tickets.erase(ledger.tickets.begin());
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    Facts facts = machine(2);
    facts.draining = {uuid_of(0)};
    CHECK(preemptions(ledger, facts, kNow).empty());
  }
  SUBCASE("no lease that does not say so") {
    for (Ticket& ticket : ledger.tickets) ticket.yield_s.reset();
    ledger.tickets.push_back(wants(9, 1, {0, 1}));
    CHECK(ended(ledger, 2).empty());
  }
}

TEST_CASE("one large lease ends rather than two small ones") {
  Ledger ledger;
  ledger.tickets = {yielder(1, {0, 1}, 10), yielder(2, {2}, 20), yielder(3, {3}, 30),
                    wants(9, 2, {0, 1, 2, 3})};
  CHECK(ended(ledger, 4) == Ids{1});
}

TEST_CASE("a lease counts for the devices that the waiter could use, and not for all that it has") {
  Ledger ledger;
  ledger.tickets = {yielder(1, {0, 1}, 10), yielder(2, {2, 8}, 20), yielder(3, {3, 9}, 30),
                    wants(9, 2, {0, 1, 2, 3})};
  CHECK(ended(ledger, 10) == Ids{1});
}

TEST_CASE("of equally few leases the younger end, also if the youngest of all are too many") {
  Ledger ledger;
  ledger.tickets = {yielder(1, {0, 1, 2}, 10), yielder(2, {3, 4}, 20), yielder(3, {5}, 30),
                    yielder(4, {6}, 40), wants(9, 2, {0, 1, 2, 3, 4, 5, 6})};
  CHECK(ended(ledger, 7) == Ids{2});
}

// More sets of two than are tried, and no other of them is enough.
TEST_CASE("of so many leases that not all sets are tried, those end that have most of what is wanted") {
  constexpr unsigned kSmall = 40;
  Ledger ledger;
  ledger.tickets = {yielder(1, {0, 1, 2, 3}, 1), yielder(2, {4, 5, 6, 7}, 2)};
  std::vector<unsigned> wanted = {0, 1, 2, 3, 4, 5, 6, 7};
  for (unsigned i = 0; i < kSmall; ++i) {
    ledger.tickets.push_back(yielder(3 + i, {8 + i}, 3 + i));
    wanted.push_back(8 + i);
  }
  static_assert(kSmall * (kSmall + 1) / 2 > kMostSetsTried);
  ledger.tickets.push_back(wants(99, 8, wanted));
  CHECK(ended(ledger, 8 + kSmall) == Ids{1, 2});
}

TEST_CASE("what ends for a later waiter may do for an earlier one too") {
  Ledger ledger;
  ledger.tickets = {yielder(1, {0}, 1), yielder(2, {1}, 1), yielder(3, {2}, 1), wants(8, 1, {0, 1, 2}),
                    wants(9, 1, {1})};
  CHECK(ended(ledger, 3) == Ids{1, 2});
}

TEST_CASE("a request that yields stands behind all that do not") {
  Ledger ledger;
  ledger.tickets = {wants(1, 1, {0}), wants(2, 1, {0})};
  ledger.tickets[0].yield_s = 30;
  const auto of = [&](TicketId id) { return plan(ledger, machine(1), {}, id, {}, kNow).value(); };
  CHECK(std::holds_alternative<Behind>(of(TicketId{1})));
  CHECK(std::holds_alternative<Granted>(of(TicketId{2})));
}

TEST_CASE("a request that yields fills a gap as others do") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), wants(2, 2, {0, 1}), wants(3, 1, {0, 1})};
  ledger.tickets[0].granted_boot_s = kNowS;
  ledger.tickets[0].time_s = 600;
  ledger.tickets[2].yield_s = 30;
  const Request request;
  Facts facts = machine(2);
  facts.policy.queue.backfill = true;
  CHECK(std::holds_alternative<Behind>(plan(ledger, facts, request, TicketId{3}, {}, kNow).value()));
  ledger.tickets[2].time_s = 600;
  CHECK(std::holds_alternative<Granted>(plan(ledger, facts, request, TicketId{3}, {}, kNow).value()));
}

TEST_CASE("what somebody waits to be given by those that yield, others that yield leave alone") {
  Ledger ledger;
  ledger.tickets = {yielder(1, {0}, 10), wants(2, 2, {0, 1}), wants(3, 1, {0, 1}), wants(4, 1, {0, 1, 2})};
  for (const std::size_t yields : {2, 3}) {
    ledger.tickets[yields].yield_s = 30;
    ledger.tickets[yields].time_s = 1;
  }
  Facts facts = machine(3);
  facts.policy.queue.backfill = true;
  const auto of = [&](std::uint64_t id) { return plan(ledger, facts, {}, TicketId{id}, {}, kNow).value(); };
  const auto chosen = [&](std::uint64_t id) { return std::get<Granted>(of(id)).choice.uuids; };
  CHECK(std::holds_alternative<Behind>(of(3)));
  CHECK(chosen(4) == std::vector{uuid_of(2)});
  ledger.tickets[0].ending = true;
  CHECK(std::holds_alternative<Behind>(of(3)));
  // What does not yield ends at its time only, and leaves a gap until then.
  ledger.tickets[0].ending = false;
  ledger.tickets[0].yield_s.reset();
  CHECK(chosen(3) == std::vector{uuid_of(1)});
}

/// Of each that waits and does not yield, in order, whether it starts.
std::vector<bool> who_could_start(Ledger ledger, const std::vector<TicketId>& gone, const Facts& facts) {
  std::erase_if(ledger.tickets, [&](const Ticket& ticket) {
    const bool waits_and_yields = ticket.phase == TicketPhase::waiting && ticket.yield_s;
    return waits_and_yields || ticket.ending || std::ranges::find(gone, ticket.id) != gone.end();
  });
  const HostQueue queue = host_queue_of(ledger, facts, kNow);
  std::vector<bool> starts;
  for (const Assignment& assignment : schedule(queue.state, facts.policy.queue))
    starts.push_back(std::holds_alternative<StartsNow>(assignment));
  return starts;
}

// The later may start less: an earlier one may have what they would have had.
TEST_CASE("those that end let somebody start earlier than without any one of them") {
  holds_for_any([] {
    Ledger ledger;
    for (unsigned device = 0; device < 5; ++device) {
      if (*rc::gen::arbitrary<bool>()) continue;
      ledger.tickets.push_back(yielder(1 + device, {device}, *rc::gen::inRange(1, 100)));
      if (*rc::gen::inRange(0, 3) == 0) ledger.tickets.back().yield_s.reset();
      if (ledger.tickets.back().yield_s) ledger.tickets.back().ending = *rc::gen::inRange(0, 4) == 0;
    }
    const auto waiting = *rc::gen::inRange(1, 5);
    for (int i = 0; i < waiting; ++i) {
      const auto mask = *rc::gen::inRange(1U, 32U);
      std::vector<unsigned> wanted;
      for (unsigned device = 0; device < 5; ++device) {
        if ((mask >> device & 1U) != 0) wanted.push_back(device);
      }
      const auto count = *rc::gen::inRange(1U, static_cast<unsigned>(wanted.size()) + 1);
      ledger.tickets.push_back(wants(100 + static_cast<std::uint64_t>(i), count, wanted));
      if (*rc::gen::inRange(0, 4) == 0) ledger.tickets.back().yield_s = 30;
    }
    Facts facts = machine(5);
    facts.policy.queue.backfill = *rc::gen::arbitrary<bool>();

    std::vector<TicketId> gone;
    for (const Preemption& yield : preemptions(ledger, facts, kNow)) {
      const Ticket* lease = find_ticket(ledger, yield.lease);
      RC_ASSERT((lease != nullptr && lease->yield_s && !lease->ending));
      RC_ASSERT(!find_ticket(ledger, yield.waiter)->yield_s);
      gone.push_back(yield.lease);
    }
    if (gone.empty()) return;
    const std::vector<bool> with_all = who_could_start(ledger, gone, facts);
    RC_ASSERT(with_all > who_could_start(ledger, {}, facts));
    for (const TicketId one : gone) {
      std::vector<TicketId> others = gone;
      std::erase(others, one);
      RC_ASSERT(who_could_start(ledger, others, facts) < with_all);
    }
  });
}

constexpr unsigned kDevices = 9;

/// From the first test on as far as the last of them goes.
unsigned at_random(unsigned least, unsigned most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

/// Leases of one to three devices, of which most yield. The larger ones are rather the older ones,
/// so that the youngest are often too many.
std::vector<Ticket> leases_at_random() {
  std::vector<Ticket> leases;
  for (unsigned device = 0; device < kDevices;) {
    const unsigned next = std::min(kDevices, device + at_random(1, 3));
    const auto since_s = std::int64_t{10} * at_random(0, 9) + 40 * (4 - static_cast<int>(next - device));
    std::vector<unsigned> devices;
    for (; device < next; ++device) devices.push_back(device);
    const auto id = 1 + leases.size();
    if (at_random(0, 5) == 0) continue;
    leases.push_back(yielder(id, devices, since_s + static_cast<std::int64_t>(id)));
    if (at_random(0, 5) == 0) leases.back().yield_s.reset();
  }
  return leases;
}

/// The same by trying all sets.
Ids fewest_by_force(const Ledger& ledger, const Facts& facts) {
  std::vector<Ticket> leases;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted && ticket.yield_s) leases.push_back(ticket);
  }
  std::ranges::sort(leases, {}, &Ticket::since_s);
  // The older a lease, the higher is its bit: of sets of one size the least has the youngest.
  std::optional<unsigned> best;
  for (unsigned set = 0; set < 1U << leases.size(); ++set) {
    if (best && std::popcount(set) >= std::popcount(*best)) continue;
    std::vector<TicketId> gone;
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if ((set >> (leases.size() - 1 - i) & 1U) != 0) gone.push_back(leases[i].id);
    }
    if (who_could_start(ledger, gone, facts).front()) best = set;
  }
  Ids ids;
  for (std::size_t i = 0; best && i < leases.size(); ++i) {
    if ((*best >> (leases.size() - 1 - i) & 1U) != 0) ids.push_back(leases[i].id.value);
  }
  std::ranges::sort(ids);
  return ids;
}

TEST_CASE("those that end are the fewest that suffice, and of these the youngest") {
  holds_for_any([] {
    Ledger ledger;
    ledger.tickets = leases_at_random();
    std::vector<unsigned> wanted;
    for (unsigned device = 0; device < kDevices; ++device) {
      if (device == 0 || at_random(0, 2) != 0) wanted.push_back(device);
    }
    const auto most = static_cast<unsigned>(wanted.size());
    ledger.tickets.push_back(wants(99, std::min(most, at_random(1, 5)), wanted));
    const Facts facts = machine(kDevices);
    RC_ASSERT(ended(ledger, kDevices) == fewest_by_force(ledger, facts));
  });
}

}  // namespace
}  // namespace berth::preemption_test
