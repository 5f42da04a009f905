#include "berth/timeline/model/timeline.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::test::timeline_test {
namespace {

constexpr std::int64_t kNow = 1'795'262'400;
constexpr std::int64_t kHour = 3600;

Ticket owned(Ticket ticket, const std::string& user, std::uint32_t uid) {
  ticket.user = user;
  ticket.uid = uid;
  ticket.command = "train.py";
  ticket.since_s = kNow - kHour;
  return ticket;
}

Ticket granted(std::uint64_t id, unsigned gpu, std::optional<std::int64_t> time_s) {
  Ticket lease = owned(test::lease(id, uuid_of(gpu)), "ada", 1001);
  lease.time_s = time_s;
  return lease;
}

Standing waiter(std::uint64_t id, std::optional<std::int64_t> starts_at_s, std::vector<std::string> on,
                std::optional<std::int64_t> time_s = {}) {
  Ticket ticket = owned({}, "bob", 1002);
  ticket.id = TicketId{id};
  ticket.candidates = {std::string(kEveryDevice)};
  ticket.time_s = time_s;
  return {.ticket = ticket, .starts_at_s = starts_at_s, .starts_on = std::move(on)};
}

HostReport report_of(unsigned count, std::vector<Ticket> tickets, std::vector<Standing> waiters = {}) {
  HostReport report;
  report.facts = machine(count);
  report.ledger.tickets = std::move(tickets);
  report.waiters = std::move(waiters);
  report.verdicts = judge_each(Request(), report.ledger, report.facts).value();
  return report;
}

Timeline made(const HostReport& report, const RecordedLeases* past = nullptr) {
  return timeline_of(report, past, {.now_s = kNow});
}

TEST_CASE("a lease is a bar from its grant to its limit, or to where nobody knows") {
  const Timeline line = made(report_of(3, {granted(1, 0, 3 * kHour), granted(2, 1, {})}));
  REQUIRE(line.rows.size() == 3);
  REQUIRE(line.rows[0].bars.size() == 1);
  CHECK(line.rows[0].bars[0] == TimelineBar{.kind = BarKind::lease,
                                            .end = BarEnd::limit,
                                            .from_s = kNow - kHour,
                                            .until_s = kNow + 2 * kHour,
                                            .user = "ada",
                                            .what = "train.py",
                                            .id = TicketId{1},
                                            .uid = 1001});
  CHECK(line.rows[1].bars[0].end == BarEnd::open);
  CHECK(line.rows[1].bars[0].until_s == line.to_s);
  CHECK(line.rows[2].free);
  CHECK(line.rows[2].bars.empty());
}

TEST_CASE("next is the device whose last lease ends first, and only if all of them say when") {
  Ticket shared = granted(2, 1, 2 * kHour);
  Ticket other = granted(3, 1, 4 * kHour);
  for (Ticket* each : {&shared, &other}) {
    each->shared = true;
    each->promise_bytes = kGiB;
  }
  const Timeline line = made(report_of(2, {granted(1, 0, 3 * kHour), shared, other}));
  CHECK(line.next == NextEnd{uuid_of(0), "0", kNow + 2 * kHour});
  other.time_s.reset();
  CHECK_FALSE(made(report_of(2, {granted(1, 0, {}), shared, other})).next.has_value());
  CHECK(made(report_of(1, {granted(1, 0, kHour / 2)})).next->at_s == kNow);  // its time is over: it ends now
}

Ticket expected(std::uint64_t id, unsigned gpu, std::int64_t expected_s) {
  Ticket lease = granted(id, gpu, {});
  lease.expected_s = expected_s;
  lease.likely_s = 3 * expected_s;
  return lease;
}

TEST_CASE("a lease without a limit is expected to end as earlier runs did, and only as long as that is so") {
  const Timeline line =
      made(report_of(4, {expected(1, 0, 3 * kHour), expected(2, 1, kHour / 2), expected(3, 2, 86'400)}));
  CHECK(line.rows[0].bars[0].expected_s == kNow + 2 * kHour);
  CHECK((line.rows[0].bars[0].end == BarEnd::open && line.rows[0].bars[0].until_s == line.to_s));
  CHECK_FALSE(line.rows[1].bars[0].expected_s.has_value());  // it has outlasted them
  CHECK_FALSE(line.rows[2].bars[0].expected_s.has_value());  // a day or more
  CHECK(line.next == NextEnd{uuid_of(0), "0", kNow + 2 * kHour, true});
}

TEST_CASE("a time limit is certain, whatever is expected, and of what nothing is known nothing is expected") {
  Ticket limited = expected(1, 0, 3 * kHour);
  limited.time_s = 5 * kHour;
  limited.likely_s.reset();
  Ticket unknown = granted(2, 1, {});
  unknown.expected_s = 6 * kHour;
  const Timeline line = made(report_of(2, {limited, unknown}));
  CHECK((line.rows[0].bars[0].end == BarEnd::limit && !line.rows[0].bars[0].expected_s));
  CHECK_FALSE(line.rows[1].bars[0].expected_s.has_value());
  CHECK(line.next == NextEnd{uuid_of(0), "0", kNow + 4 * kHour, false});
}

TEST_CASE("a request is a reservation where it starts, and stands in the queue") {
  const Timeline line = made(report_of(2, {granted(1, 0, 2 * kHour), granted(2, 1, {})},
                                       {waiter(3, kNow + kHour, {uuid_of(0)}, kHour), waiter(4, {}, {})}));
  REQUIRE(line.rows[0].bars.size() == 2);
  const TimelineBar& bar = line.rows[0].bars[1];
  CHECK((bar.kind == BarKind::reservation && bar.end == BarEnd::limit));
  CHECK((bar.from_s == kNow + kHour && bar.until_s == kNow + 2 * kHour && bar.user == "bob"));
  CHECK(line.rows[1].bars.size() == 1);
  REQUIRE(line.queue.size() == 2);
  CHECK(line.queue[0].until_s == kNow + 2 * kHour);
  CHECK_FALSE(line.queue[1].starts_at_s.has_value());
}

TEST_CASE("a free device that is kept is reserved from now on") {
  HostReport report =
      report_of(2, {granted(1, 0, 2 * kHour)}, {waiter(3, kNow + kHour, {uuid_of(0), uuid_of(1)})});
  report.verdicts[1].failed = Clause::not_awaited;
  report.verdicts[1].culprits.emplace_back().user = "bob";
  CHECK(made(report).rows[1].bars.front().from_s == kNow);
  report.waiters.clear();
  const TimelineBar bar = made(report).rows[1].bars.front();
  CHECK((bar.kind == BarKind::reservation && bar.end == BarEnd::open && bar.user == "bob"));
}

TEST_CASE("who computes without a lease has a bar, and what cannot be had says why") {
  HostReport report = report_of(2, {});
  Process stray = process(77, kGiB);
  stray.started_at_s = kNow - 60;
  add_process(report.facts.snapshot.devices[0], stray);
  report.facts.snapshot.devices[1].state = DeviceState::lost;
  report.verdicts = judge_each(Request(), report.ledger, report.facts).value();
  const Timeline line = made(report);
  REQUIRE(line.rows[0].bars.size() == 1);
  CHECK((line.rows[0].bars[0].kind == BarKind::outsider && line.rows[0].bars[0].from_s == kNow - 60));
  REQUIRE(line.rows[1].bars.size() == 1);
  CHECK((line.rows[1].bars[0].kind == BarKind::unusable && line.rows[1].bars[0].from_s == kNow));
}

TEST_CASE("the past has what is over, each lease once, and the loads of the history") {
  RecordedLeases past{.from_s = kNow - 6 * kHour, .to_s = kNow, .devices = {uuid_of(1), uuid_of(0)}};
  past.leases = {{TicketId{1}, "ada", kNow - kHour, {}, {1}},  // lives: the ledger tells it
                 {TicketId{9}, "eve", kNow - 5 * kHour, kNow - 4 * kHour, {0, 1}},
                 {TicketId{8}, "eve", kNow - 9 * kHour, kNow - 8 * kHour, {1}},  // before it begins
                 {TicketId{7}, "bob", kNow - 30, {}, {0}}};  // has ended since the last look
  past.step_s = 300;
  past.loads = {{1, 2}, {90, std::nullopt}};
  const Timeline line = made(report_of(3, {granted(1, 0, {})}), &past);
  CHECK((line.from_s == past.from_s && line.step_s == 300));
  REQUIRE(line.rows[0].bars.size() == 2);
  CHECK((line.rows[0].bars[0].user == "eve" && line.rows[0].bars[0].end == BarEnd::over));
  CHECK(line.rows[0].bars[1].id == TicketId{1});
  CHECK(line.rows[0].loads == std::vector<Reading<int>>{90, std::nullopt});
  REQUIRE(line.rows[1].bars.size() == 2);
  CHECK((line.rows[1].bars[1].user == "bob" && line.rows[1].bars[1].until_s == kNow));
  CHECK(line.rows[2].loads.empty());
}

TEST_CASE("a whole lease that is over has the memory and use of the steps that were its own") {
  RecordedLeases past{.from_s = kNow - 6 * kHour, .to_s = kNow, .devices = {uuid_of(0)}};
  const auto lease_of = [&](std::uint64_t id, std::int64_t from_s, std::int64_t until_s, bool whole) {
    past.leases.push_back({TicketId{id}, "eve", past.from_s + from_s, past.from_s + until_s, {0}});
    past.leases.back().wish = RecordedWish{.whole = whole};
  };
  lease_of(1, 150, 1000, true);   // the steps of 300 and 600 are its own
  lease_of(2, 1010, 1490, true);  // none is
  lease_of(3, 1500, 2100, false);
  lease_of(4, 2100, 2700, true);
  past.step_s = 300;
  past.loads = {{90, 10, 21, 90, 90, 50, 50, std::nullopt, std::nullopt}};
  past.memories = {{9000, 100, 200, 9000, 9000, 50, 50, std::nullopt, std::nullopt}};
  const Timeline line = made(report_of(1, {}), &past);
  REQUIRE(line.rows[0].bars.size() == 4);
  CHECK((line.rows[0].bars[0].peak_mib == 200 && line.rows[0].bars[0].use_percent == 15));
  for (const std::size_t each : {1U, 2U, 3U})
    CHECK((!line.rows[0].bars[each].peak_mib && !line.rows[0].bars[each].use_percent));
  past.leases[1].figures = {{0, {4711, false}}, {1, {9999, true}}};
  const Timeline used = made(report_of(1, {}), &past);
  CHECK((used.rows[0].bars[1].energy_mj == 4711 && used.rows[0].bars[1].clean == false));
  CHECK((!used.rows[0].bars[0].energy_mj && !used.rows[0].bars[0].clean));
  past.leases.front().wish.reset();  // as an older Berth has recorded it
  CHECK_FALSE(made(report_of(1, {}), &past).rows[0].bars[0].peak_mib.has_value());
  past.memories.clear();
  CHECK_FALSE(made(report_of(1, {}), &past).rows[0].bars[0].use_percent.has_value());
}

TEST_CASE("without a history there is no past, and the rest is there") {
  const Timeline line = made(report_of(1, {granted(1, 0, {})}));
  CHECK(line.step_s == 0);
  CHECK(line.from_s == kNow - 6 * kHour);
  CHECK(line.rows[0].bars.size() == 1);
}

}  // namespace
}  // namespace berth::test::timeline_test
