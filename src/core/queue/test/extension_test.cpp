#include "berth/queue/standing.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::extension_test {
namespace {

using namespace test;

constexpr Moment kNowS = 100'000;
constexpr Moment kNow = kNowS * kSecond;
constexpr std::int64_t kHour = 3600;

Ticket timed_lease(std::uint64_t id, unsigned device, std::int64_t time_s) {
  Ticket ticket = lease(id, uuid_of(device));
  ticket.granted_boot_s = kNowS - 60;
  ticket.time_s = time_s;
  return ticket;
}

Facts two_gpus() {
  Facts facts = machine(2);
  facts.policy.queue.backfill = true;
  return facts;
}

TEST_CASE("an extension that moves back a reservation is told with whose it is") {
  Ledger ledger;
  ledger.tickets = {timed_lease(1, 0, kHour), timed_lease(2, 1, 3 * kHour)};
  const auto delayed = [&](std::uint64_t lease, std::int64_t time_s, std::set<TicketId> skipped = {}) {
    return delayed_by_extension(ledger, two_gpus(), kNow, skipped, TicketId{lease}, time_s);
  };
  // Nobody waits.
  CHECK_FALSE(delayed(1, 2 * kHour).has_value());

  ledger.tickets.push_back(wants(9, 1, {0, 1}));
  CHECK(delayed(1, 2 * kHour) == Delayed{TicketId{9}, kNowS - 60 + kHour});
  CHECK_FALSE(delayed(2, 9 * kHour).has_value());
  CHECK_FALSE(delayed(1, 2 * kHour, {TicketId{9}}).has_value());

  SUBCASE("one that wants both starts when the later lease ends") {
    ledger.tickets.back().count = 2;
    CHECK_FALSE(delayed(1, 3 * kHour).has_value());
    CHECK(delayed(1, 4 * kHour) == Delayed{TicketId{9}, kNowS - 60 + 3 * kHour});
  }
  SUBCASE("of who yields nothing is asked") {
    ledger.tickets.back().yield_s = 30;
    CHECK_FALSE(delayed(1, 2 * kHour).has_value());
  }
  SUBCASE("a site without backfill reserves nothing") {
    CHECK_FALSE(delayed_by_extension(ledger, machine(2), kNow, {}, TicketId{1}, 2 * kHour).has_value());
  }
}

}  // namespace
}  // namespace berth::extension_test
