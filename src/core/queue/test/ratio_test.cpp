// Tickets that say how long they are expected to last: whose turn it is, behind whom they sleep,
// who is rung.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "berth/queue/acquisition.h"
#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/queue/test/asker.h"
#include "berth/queue/ticket_codec.h"
#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::ratio_test {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr Moment kNow = 400'000 * kSecond;
constexpr std::int64_t kHour = 3600, kDay = 86'400;

TicketId joined(Moment seconds_ago) {
  return TicketId{static_cast<std::uint64_t>(kNow - seconds_ago * kSecond) * 1'000'000};
}

/// Has waited for so long, and is expected to last so long.
Ticket waits(Moment seconds_ago, std::optional<std::int64_t> expected_s, unsigned count = 1) {
  Ticket ticket;
  ticket.id = joined(seconds_ago);
  ticket.uid = 1000;
  ticket.count = count;
  ticket.candidates = {uuid_of(0), uuid_of(1)};
  ticket.expected_s = expected_s;
  return ticket;
}

Facts site(bool backfill = true) {
  Facts facts = machine(2);
  facts.policy.queue.backfill = backfill;
  facts.policy.queue.expect = Expect::limits;
  return facts;
}

Plan planned(const std::vector<Ticket>& tickets, const Ticket& me, const Facts& facts = site(),
             const std::set<TicketId>& skipped = {}) {
  Request request;
  request.count = me.count;
  request.order = Order::index;
  Ledger ledger;
  ledger.tickets = tickets;
  std::ranges::sort(ledger.tickets, {}, &Ticket::id);
  const auto found = plan(ledger, facts, request, me.id, skipped, kNow);
  REQUIRE(found.has_value());
  return *found;
}

TEST_CASE("a later short request takes what is free, and the long one that came first looks after it") {
  const Ticket large = waits(1000, kDay), quick = waits(10, 60);
  for (const bool backfill : {true, false}) {
    const std::vector<Ticket> queue{lease(1, uuid_of(1)), large, quick};
    CHECK(planned(queue, quick, site(backfill)) == Plan(Granted{{{uuid_of(0)}, {}}}));
    const Plan first = planned(queue, large, site(backfill));
    REQUIRE(std::holds_alternative<Behind>(first));
    CHECK(std::get<Behind>(first).rival == quick.id);
    CHECK(std::get<Behind>(first).unguarded == large.candidates);
  }
}

TEST_CASE("whom the short one has not passed yet goes before it") {
  const Ticket large = waits(1000, kDay), quick = waits(0, 60);
  const std::vector<Ticket> queue{lease(1, uuid_of(1)), large, quick};
  CHECK(planned(queue, large) == Plan(Granted{{{uuid_of(0)}, {}}}));
  CHECK(std::holds_alternative<Behind>(planned(queue, quick)));
}

TEST_CASE("nobody goes past the request of a program that does not know the order, nor does that one") {
  const Ticket large = waits(1000, kDay), old = waits(500, std::nullopt), quick = waits(100, 60);
  const std::vector<Ticket> queue{lease(1, uuid_of(1)), large, old, quick};
  CHECK(planned(queue, large) == Plan(Granted{{{uuid_of(0)}, {}}}));
  CHECK(std::holds_alternative<Behind>(planned(queue, old)));
  CHECK(std::holds_alternative<Behind>(planned(queue, quick)));
}

TEST_CASE("where too little is free, the one whose turn is first sleeps behind the one that came first") {
  const Ticket large = waits(1000, kDay), quick = waits(10, 60);
  const std::vector<Ticket> queue{lease(1, uuid_of(1)), lease(2, uuid_of(0)), large, quick};
  CHECK(planned(queue, quick) == Plan(Behind{large.id}));
  CHECK(std::holds_alternative<Blocked>(planned(queue, quick, site(), {large.id})));
  // That one watches the devices, as often as what keeps them from it asks for.
  CHECK(std::holds_alternative<Blocked>(planned(queue, large)));
}

TEST_CASE("having waited for its longest time, the one that came first has its turn") {
  Ticket large = waits(1000, kDay);
  const Ticket quick = waits(10, 60);
  large.longest_wait_s = 1000;
  CHECK(planned({lease(1, uuid_of(1)), large, quick}, large) == Plan(Granted{{{uuid_of(0)}, {}}}));
  CHECK(std::holds_alternative<Behind>(planned({lease(1, uuid_of(1)), large, quick}, quick)));
}

TEST_CASE("a clock that was set back changes no turn: the age is that of the boot clock") {
  Ticket large = waits(1000, kDay), quick = waits(10, 60);
  large.joined_s = 1;
  quick.joined_s = 2'000'000'000;
  CHECK(planned({lease(1, uuid_of(1)), large, quick}, quick) == Plan(Granted{{{uuid_of(0)}, {}}}));
}

/// A queue of strangers to each other, over two devices.
std::vector<Ticket> any_queue() {
  std::vector<Ticket> tickets;
  for (unsigned device = 0; device < 2; ++device) {
    if (*rc::gen::arbitrary<bool>()) tickets.push_back(lease(device + 1, uuid_of(device)));
  }
  Moment ago = 200'000;
  for (int left = *rc::gen::inRange(1, 8); left > 0; --left) {
    ago -= *rc::gen::inRange<Moment>(1, 20'000);
    Ticket ticket = waits(ago, *rc::gen::inRange<std::int64_t>(60, kDay + 1), *rc::gen::inRange(1U, 3U));
    if (*rc::gen::inRange(0, 4) == 0) ticket.time_s = *ticket.expected_s;
    if (*rc::gen::inRange(0, 5) == 0) ticket.yield_s = 30;
    const int wide = *rc::gen::inRange(0, 3);
    if (ticket.count == 1 && wide < 2) ticket.candidates = {uuid_of(static_cast<unsigned>(wide))};
    tickets.push_back(std::move(ticket));
  }
  return tickets;
}

TEST_CASE("to a ticket those matter that come first, or that keep others behind themselves") {
  const Ticket long_one = waits(2000, kDay), me = waits(1000, kDay), quick = waits(500, 60);
  const Ticket old = waits(300, std::nullopt), behind_old = waits(200, 60);
  Ticket later = waits(400, kDay), yields = waits(100, 60);
  yields.yield_s = 30;
  const auto matter = [&] {
    return those_that_matter(me, {&long_one, &me, &quick, &later, &old, &behind_old, &yields}, kNow);
  };
  CHECK(matter() == std::set{long_one.id, quick.id, old.id});
  // Once one of them may come first by its longest wait, each decides who does.
  later.longest_wait_s = 400;
  CHECK(matter() == std::set{long_one.id, quick.id, later.id, old.id, behind_old.id, yields.id});
}

TEST_CASE("those that do not matter to a ticket change nothing for it, whether they leave or are held back") {
  std::size_t without_matter = 0;
  const auto one_queue = [&] {
    std::vector<Ticket> tickets = any_queue();
    for (Ticket& one : tickets) {
      if (one.phase != TicketPhase::waiting) continue;
      if (*rc::gen::inRange(0, 8) == 0) one.expected_s.reset();
      if (*rc::gen::inRange(0, 8) == 0) one.number = fair(*rc::gen::inRange(0, 3));
      if (*rc::gen::inRange(0, 8) == 0) one.longest_wait_s = kDay;
      one.held_back = *rc::gen::inRange(0, 6) == 0;
    }
    std::vector<const Ticket*> waiting;
    for (const Ticket& one : tickets) {
      if (one.phase == TicketPhase::waiting) waiting.push_back(&one);
    }
    Ticket me = *waiting[*rc::gen::inRange<std::size_t>(0, waiting.size())];
    const std::set<TicketId> matter = those_that_matter(me, waiting, kNow);
    std::vector<Ticket> then;
    for (Ticket one : tickets) {
      const bool changes = one.phase == TicketPhase::waiting && one.id != me.id && !matter.contains(one.id);
      without_matter += changes ? 1 : 0;
      if (changes && *rc::gen::arbitrary<bool>()) continue;
      if (changes) one.held_back = *rc::gen::arbitrary<bool>();
      then.push_back(std::move(one));
    }
    const Facts facts = site(*rc::gen::arbitrary<bool>());
    RC_ASSERT(planned(tickets, me, facts) == planned(then, me, facts));
  };
  // In few of them is there somebody who does not matter.
  holds_for_any([&] {
    for (int queue = 0; queue < 10; ++queue) one_queue();
  });
  CHECK(without_matter > 0);
}

TEST_CASE("if all are expected to last as long, the order is the one where nothing is expected") {
  holds_for_any([] {
    std::vector<Ticket> tickets = any_queue();
    // With backfill, more of them have a reservation.
    const Facts facts = site(false);
    std::vector<Ticket> silent = tickets;
    for (Ticket& ticket : tickets) ticket.expected_s = kHour;
    for (Ticket& ticket : silent) ticket.expected_s.reset();
    for (std::size_t at = 0; at < tickets.size(); ++at) {
      if (tickets[at].phase != TicketPhase::waiting) continue;
      RC_ASSERT(planned(tickets, tickets[at], facts) == planned(silent, silent[at], facts));
    }
  });
}

TEST_CASE("somebody is granted what is free: whoever is before another by turn is not behind it as well") {
  holds_for_any([] {
    std::vector<Ticket> tickets = any_queue();
    for (Ticket& ticket : tickets) {
      ticket.count = 1;
      ticket.candidates = {uuid_of(0), uuid_of(1)};
      if (*rc::gen::inRange(0, 5) == 0) ticket.expected_s.reset();
    }
    const auto leases = std::ranges::count(tickets, TicketPhase::granted, &Ticket::phase);
    int granted = 0, asleep_behind_later = 0;
    for (const Ticket& ticket : tickets) {
      if (ticket.phase != TicketPhase::waiting) continue;
      const Plan found = planned(tickets, ticket);
      granted += std::holds_alternative<Granted>(found) ? 1 : 0;
      const auto* behind = std::get_if<Behind>(&found);
      // Whoever sleeps behind a later one watches all devices for itself.
      if (behind != nullptr &&
          !comes_before(*find_ticket(acquisition::books(tickets), behind->rival), ticket)) {
        ++asleep_behind_later;
        RC_ASSERT(behind->unguarded == ticket.candidates);
      }
    }
    RC_ASSERT(granted > 0 || leases == 2);
    RC_ASSERT(granted <= 2 - leases);
    RC_ASSERT(asleep_behind_later <= 1);
  });
}

TEST_CASE("devices are kept for what is likely, and a lease is expected to last as long") {
  Ticket both = waits(100'000, kDay, 2), quick = waits(10, 600);
  Ticket held = lease(1, uuid_of(1));
  held.granted_boot_s = (kNow - kHour * kSecond) / kSecond;
  held.expected_s = kHour;
  // Kept from in an hour on: who is likely to be gone by then starts on what is free until then.
  both.longest_wait_s = 1;
  held.likely_s = 2 * kHour;
  quick.likely_s = kHour / 2;
  CHECK(planned({held, both, quick}, quick) == Plan(Granted{{{uuid_of(0)}, {}}}));
  quick.likely_s = 2 * kHour;
  CHECK(std::holds_alternative<Behind>(planned({held, both, quick}, quick)));
  // What has lasted for longer than was likely goes on for longer still.
  held.likely_s = 600;
  CHECK(planned({held, both, quick}, quick) == Plan(Granted{{{uuid_of(0)}, {}}}));
}

// What a request does.

acquisition::Asker of_order(const Ticket& mine, bool backfill = true) {
  acquisition::Asker asker(acquisition::patient());
  asker.facts = site(backfill);
  asker.mine.expected_s = mine.expected_s;
  return asker;
}

TEST_CASE("in a long queue with too little free, who joins reads the nearest tickets alone") {
  acquisition::Asker asker = of_order(waits(0, 60));
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  Ticket near = acquisition::waiter(5);
  near.expected_s = kDay;
  asker.earlier = {near};
  asker.unread = 900;
  asker.first_unread = TicketId{1};
  asker.looks();
  CHECK(acquisition::is<Stay>(asker.decides()));
  SUBCASE("nor those that came later, which do not stand before it") {
    asker.first_unread = TicketId{acquisition::kMe + 1};
    CHECK(acquisition::is<Stay>(asker.decides()));
    asker.passes_the_gate();
    asker.is_told_the_names();
    CHECK(asker.state().standing.position == 2);
  }
  SUBCASE("and where something is free, all") {
    asker.leases.pop_back();
    const auto decision = asker.decides();
    REQUIRE(acquisition::is<ReadOn>(decision));
    CHECK(std::get<ReadOn>(*decision) == ReadOn{.all = true, .front = false});
  }
  SUBCASE("and where those between were not read, these") {
    asker.earlier = {};
    CHECK(acquisition::is<ReadOn>(asker.decides()));
  }
}

TEST_CASE("at its tick whoever came first rings whose turn has come by time alone") {
  for (const bool backfill : {true, false}) {
    acquisition::Asker asker = of_order(waits(0, kDay), backfill);
    asker.boot = 3'000;
    asker.leases = {lease(1, uuid_of(0))};
    Ticket quick = acquisition::waiter(acquisition::kMe + 1'000'000'000);  // a second later
    quick.expected_s = 60;
    Ticket large = acquisition::waiter(acquisition::kMe + 1);
    large.expected_s = 60;
    large.count = 2;
    asker.earlier = {large, quick};
    const auto asleep = asker.goes_on();
    REQUIRE(acquisition::is<acquisition::SleepBehind>(asleep));
    CHECK(std::get<acquisition::SleepBehind>(asleep).bell);
    CHECK(acquisition::is<acquisition::Look>(asker.tell(acquisition::Ticked{})));
    CHECK(asker.goes_on() == acquisition::Action(acquisition::ReadQueue{true}));
    acquisition::QueueRead read{asker.ledger(), asker.boot};
    std::erase_if(read.ledger.tickets, [&](const Ticket& ticket) { return ticket.id == large.id; });
    CHECK(asker.tell(read) == acquisition::Action(acquisition::Ring{{quick}}));
  }
}

// What a ticket says.

TEST_CASE("where no run times count, a ticket says nothing of them, and a newcomer comes last as ever") {
  Ticket draft = waits(0, std::nullopt);
  draft.time_s = kHour;
  const std::string before = encode_ticket(draft);
  note_expectation(draft, std::vector<Moment>{600, 700}, QueueRules{});
  CHECK(encode_ticket(draft) == before);
  const Ticket last = newcomer(Request{}, {}, Ledger{}, machine(2));
  CHECK_FALSE(last.expected_s.has_value());
  CHECK_FALSE(may_go_past(last));
}

TEST_CASE("a ticket says what is expected of it, and what does not know the keys waits as it came") {
  Ticket draft = waits(0, std::nullopt);
  draft.number = fair(7);
  const std::vector<Moment> lasted{600, 700, 7200};
  note_expectation(draft, lasted, {.expect = Expect::runs, .longest_wait_s = 2 * kDay});
  const std::string text = encode_ticket(draft);
  CHECK(text.contains("\nuser_turn=7\nexpected=7200\nlikely=21600\nlongest_wait=172800\n"));
  // An older program would rank it by its fair number alone.
  CHECK_FALSE(text.contains("\nturn="));
  Ticket read = decode_ticket(text).value();
  read.uid = draft.uid;
  CHECK(read == draft);
}

TEST_CASE("what an expectation cannot be counts as the nearest that it can be, and never as absent") {
  const Ticket ticket = waits(0, kHour);
  for (const auto& [written, read] : {std::pair<std::string, std::int64_t>{"0", 60},
                                      {"-5", 60},
                                      {"59", 60},
                                      {"61", 61},
                                      {"86401", kDay},
                                      {"100000000000000000000000", kDay},
                                      {"soon", kDay},
                                      {"", kDay},
                                      {"1.5", kDay}}) {
    CAPTURE(written);
    std::string text = encode_ticket(ticket);
    text.replace(text.find("expected=3600"), 13, "expected=" + written);
    CHECK(decode_ticket(text)->expected_s == read);
  }
  for (const std::string odd : {"likely=1", "likely=never", "longest_wait=5", "longest_wait=-1"}) {
    std::string text = encode_ticket(ticket);
    text.insert(text.find("request=") == std::string::npos ? text.find("candidate=") : text.find("request="),
                odd + "\n");
    CHECK(decode_ticket(text)->likely_s == std::nullopt);
    CHECK(decode_ticket(text)->longest_wait_s == std::nullopt);
  }
}

TEST_CASE("a limit at which nothing ends is an expectation at best") {
  const auto by = [](Expect expect, LimitHolds holds) {
    return expectation_of(300, {}, {.expect = expect}, holds)->expected_s;
  };
  CHECK(by(Expect::limits, LimitHolds::yes) == 300);
  CHECK(by(Expect::limits, LimitHolds::no) == 6 * kHour);
  CHECK(by(Expect::runs, LimitHolds::yes) == 300);
  CHECK(by(Expect::runs, LimitHolds::no) == 600);
}

TEST_CASE("it is told what an expectation goes by") {
  const auto told = [](std::optional<std::int64_t> time_s, std::vector<Moment> lasted, Expect expect) {
    Ticket draft = waits(0, std::nullopt);
    draft.time_s = time_s;
    note_expectation(draft, lasted, {.expect = expect});
    return to_text(expected_by(draft));
  };
  CHECK(told(kHour, {}, Expect::limits) == "limit");
  CHECK(told(10 * kDay, {}, Expect::limits) == "limit");
  CHECK(told({}, {kHour}, Expect::limits) == "nothing");
  CHECK(told({}, {kHour}, Expect::runs) == "runs");
  CHECK(told(2 * kHour, {kHour}, Expect::runs) == "runs");
  CHECK(told(kHour, {2 * kHour}, Expect::runs) == "limit");
}

TEST_CASE("an expectation ends nothing and extends nothing: a lease without a limit has none") {
  Ticket held = lease(1, uuid_of(0));
  held.granted_boot_s = 1;
  held.expected_s = 60;
  held.likely_s = 180;
  CHECK(said_end(held) == std::nullopt);
  CHECK(longest_stay(held, SitePolicy{}) == std::nullopt);
}

TEST_CASE("whoever came before by being short has no more time while another waits that came earlier") {
  Ticket large = waits(1000, kDay);
  Ticket held = waits(10, 60);
  held.phase = TicketPhase::granted;
  held.devices = {uuid_of(1)};
  held.time_s = 60;
  const auto passed = [&](const std::set<TicketId>& skipped = {}) {
    return passed_by_its_limit(acquisition::books({large, held}), skipped, held.id);
  };
  CHECK(passed() == large.id);
  CHECK(passed({large.id}) == std::nullopt);
  SUBCASE("that it came after") {
    large.id = joined(5);
    CHECK(passed() == std::nullopt);
  }
  SUBCASE("that wants other devices") {
    large.candidates = {uuid_of(0)};
    CHECK(passed() == std::nullopt);
  }
  SUBCASE("where the order is that of coming") {
    held.expected_s.reset();
    CHECK(passed() == std::nullopt);
  }
}

TEST_CASE("a place that may move is told as one of now") {
  Standing standing{.ticket = waits(0, 60), .position = 3, .behind = waits(10, kDay), .reason = "behind bob"};
  CHECK(in_one_line(standing) == "2 before you now, behind bob");
  standing.ticket.expected_s.reset();
  CHECK(in_one_line(standing) == "no. 3 in line, behind bob");
}

TicketId first_of(const std::vector<Ticket>& tickets, Moment at) {
  Ledger ledger;
  ledger.tickets = tickets;
  return waiting_in_order(ledger, {}, at).front()->id;
}

TEST_CASE("from when on a request comes first is when the order says so") {
  holds_for_any([] {
    std::vector<Ticket> tickets;
    for (int left = *rc::gen::inRange(2, 6); left > 0; --left) {
      const Moment ago = *rc::gen::inRange<Moment>(1, 20'000);
      const bool is_alike = *rc::gen::arbitrary<bool>();
      tickets.push_back(waits(ago, is_alike ? 600 : *rc::gen::inRange<std::int64_t>(60, kDay + 1)));
      tickets.back().id.value += tickets.size();
    }
    const Ticket& mine = tickets.front();
    std::vector<const Ticket*> others;
    for (std::size_t at = 1; at < tickets.size(); ++at) others.push_back(&tickets[at]);
    const auto is_first = [&](Moment at) { return first_of(tickets, at) == mine.id; };
    const auto from = first_from(mine, others, kNow);
    RC_ASSERT(is_first(kNow) == (from == kNow));
    if (from) {
      RC_ASSERT(is_first(*from));
      if (*from > kNow) RC_ASSERT(!is_first(*from - 1));
    }
    for (int tries = 0; tries < 20; ++tries) {
      const Moment at = kNow + *rc::gen::inRange<Moment>(0, 20 * kDay * kSecond);
      if (is_first(at)) RC_ASSERT(from && *from <= at);
    }
  });
}

TEST_CASE("nobody can say from when on a request comes first beside one of another order") {
  const Ticket mine = waits(10, 60);
  Ticket other = waits(20, kDay);
  CHECK(first_from(mine, {&other}, kNow) == kNow);
  SUBCASE("of the order of coming") {
    other.expected_s.reset();
  }
  SUBCASE("of the fair order") {
    other.number = fair(1);
  }
  SUBCASE("that yields") {
    other.yield_s = 30;
  }
  SUBCASE("that has waited for its longest wait") {
    other.longest_wait_s = 20;
  }
  CHECK(first_from(mine, {&other}, kNow) == std::nullopt);
}

TEST_CASE("an id ahead of the clock takes no age from those that join later") {
  Ticket large = waits(20'000, kDay);
  Ticket quick = waits(10'000, 600);
  for (Ticket* ticket : {&large, &quick}) {
    ticket->joined_boot_ms = joined_at(*ticket);
    ticket->id.value += static_cast<std::uint64_t>(kDay) * 1'000'000'000;
  }
  CHECK(first_of({large, quick}, kNow) == quick.id);
  SUBCASE("without a word of when they joined, both have just come") {
    large.joined_boot_ms.reset();
    quick.joined_boot_ms.reset();
    CHECK(first_of({large, quick}, kNow) == large.id);
  }
  SUBCASE("who says to have joined in the future has just come") {
    quick.joined_boot_ms = kNow + kDay * kSecond;
    CHECK(first_of({large, quick}, kNow) == large.id);
  }
}

}  // namespace
}  // namespace berth::ratio_test
