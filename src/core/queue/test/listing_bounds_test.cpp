#include "berth/queue/standing.h"

#include <doctest/doctest.h>

#include <numeric>

#include "berth/base/text.h"
#include "berth/machines/host.h"
#include "berth/verdict/test/machine.h"

namespace berth::listing_bounds_test {
namespace {

using namespace test;

Ticket ticket_of(std::uint32_t uid, std::uint64_t id, TicketPhase phase, unsigned devices) {
  Ticket ticket;
  ticket.id = {id};
  ticket.uid = uid;
  ticket.user = uid == 1000 ? "alice" : "mallory";
  ticket.phase = phase;
  ticket.command = "python train.py --config configs/large.yaml --seed 17 --out runs/2026-11-25/large";
  ticket.note = "sweep 17 of 1000: a learning rate of 0.0003";
  ticket.request = "1 whole GPU of 16, for 8 h";
  auto& uuids = phase == TicketPhase::granted ? ticket.devices : ticket.candidates;
  for (unsigned i = 0; i < devices; ++i) uuids.push_back(uuid_of(i));
  return ticket;
}

TEST_CASE("a foreign text is as long as it is shown, and never cut in a character") {
  CHECK(listed_words("python train.py") == "python train.py");
  CHECK(listed_words("two\nlines") == "two\nlines");
  CHECK(listed_words(std::string(4000, '\x1b')).size() == kMostListedWords);
  CHECK(listed_words(std::string(4000, 'x')).size() == kMostListedWords);
  CHECK(listed_words("aé", 2) == "a");
}

TEST_CASE("a thousand honest requests of one user are listed whole, on 16 GPUs") {
  Ledger ledger;
  for (std::uint64_t i = 0; i < 1000; ++i)
    ledger.tickets.push_back(ticket_of(1000, i + 1, TicketPhase::waiting, 16));
  CHECK(listed_part(ledger) == ledger);
}

TEST_CASE("what one user fills the directory with is a number, and takes no room of another user") {
  Ledger ledger;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    Ticket ticket = ticket_of(1001, i + 1, i % 2 == 0 ? TicketPhase::waiting : TicketPhase::granted, 8);
    ticket.command = ticket.note = std::string(1500, '\x1b');
    ledger.tickets.push_back(ticket);
    ledger.odd.push_back({"odd", 1001, "it has no id"});
  }
  ledger.tickets.push_back(ticket_of(1000, 6000, TicketPhase::granted, 2));
  ledger.odd.push_back({"mine", 1000, "it has no id"});
  const Ledger listed = listed_part(ledger);
  CHECK(listed.tickets.back() == ledger.tickets.back());
  CHECK(listed.odd.back() == ledger.odd.back());
  REQUIRE(listed.unlisted.size() == 1);
  const Unlisted& rest = listed.unlisted.front();
  CHECK(rest.user == "mallory");
  CHECK(rest.leases + rest.waiting + listed.tickets.size() == ledger.tickets.size());
  CHECK(rest.odd + listed.odd.size() == ledger.odd.size());
  CHECK(count_waiting(listed) == 2500);
  const auto bytes = std::accumulate(
      listed.tickets.begin(), listed.tickets.end(), std::size_t{0},
      [](std::size_t sum, const Ticket& each) { return sum + each.command.size() + each.note.size(); });
  CHECK(bytes < kMostListedLeaseBytes + kMostListedWaitingBytes);

  HostReport report;
  report.ledger = listed;
  Host host;
  host.name = "a";
  host.report = std::make_shared<const HostReport>(report);
  const Totals totals = totals_of({std::make_shared<const Host>(host)});
  REQUIRE(totals.users.size() == 2);
  CHECK(totals.users.front().leases == 2500);
  CHECK(totals.users.front().waiting == 2500);
}

TEST_CASE("a waiting request is listed if its ticket is, at its place among all") {
  Ledger ledger;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    ledger.tickets.push_back(ticket_of(1001, i + 1, TicketPhase::waiting, 1));
    ledger.tickets.back().candidates = {std::string(kEveryDevice)};
  }
  ledger.tickets.push_back(ticket_of(1000, 6000, TicketPhase::waiting, 1));
  const Ledger listed = listed_part(ledger);
  const auto told = listed_standings(ledger, listed, machine(1), {}, 0);
  CHECK(told.size() == listed.tickets.size());
  CHECK(told.size() + listed.unlisted.front().waiting == 3001);
  CHECK(told.back().ticket.uid == 1000);
  CHECK(told.back().position == 3001);
  CHECK(told.back().behind->id.value == 3000);
}

TEST_CASE("a verdict names few of the leases that hold a device, and says how many more there are") {
  const Facts facts = machine(1);
  Ledger ledger;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Ticket ticket = ticket_of(1001 + static_cast<std::uint32_t>(i % 20), i + 1, TicketPhase::granted, 1);
    ticket.user = "user" + std::to_string(ticket.uid);
    ticket.note = std::string(1500, '\x1b');
    ledger.tickets.push_back(ticket);
  }
  const auto verdicts = judge(Request(), ledger, facts);
  REQUIRE(verdicts);
  const Verdict& verdict = verdicts->front();
  CHECK(verdict.culprits.size() == kMostCulprits);
  CHECK(verdict.more_culprits == 1000 - kMostCulprits);
  CHECK(verdict.culprits.front().note.size() <= 256);
  CHECK(
      verdict.reason ==
      "leased by user1001, user1002, user1003, user1004, user1005, user1006, user1007, user1008 and 12 more");
}

}  // namespace
}  // namespace berth::listing_bounds_test
