#include "berth/verdict/site_policy.h"

#include <doctest/doctest.h>

#include "berth/queue/schedule.h"
#include "berth/verdict/test/machine.h"

namespace berth::limits_test {
namespace {

using namespace test;

constexpr WeekMinute kMondayMorning{0, 10 * 60};
constexpr WeekMinute kMondayNight{0, 22 * 60};

Limits limits_of_ada(const SiteLimits& limits, std::vector<std::string> groups = {},
                     WeekMinute now = kMondayMorning) {
  return limits_of(limits, {7, "ada", std::move(groups)}, now).now;
}

TEST_CASE("a user's own limit comes before that of a group, and that before that of all") {
  SiteLimits limits;
  limits.always = {.each = {.gpus = 1},
                   .of_users = {{"ada", {.gpus = 8}}},
                   .of_groups = {{"students", {.gpus = 2}}, {"staff", {.gpus = 4}}}};
  CHECK(limits_of_ada(limits, {"students"}).gpus == Limit{8, "limits.users.ada"});
  limits.always.of_users.clear();
  CHECK(limits_of_ada(limits, {"students", "staff"}).gpus == Limit{4, "limits.groups.staff"});
  CHECK(limits_of_ada(limits, {"guests"}).gpus == Limit{1, "limits.gpus"});
  CHECK_FALSE(limits_of_ada(SiteLimits{{.of_users = {{"bob", {.gpus = 8}}}}}).gpus.has_value());
}

TEST_CASE("what a user may have of the lab is a limit of its own, and says what counts") {
  const SiteLimits none{{.each = {.gpus = 1}}};
  CHECK_FALSE(has_lab_limit(none));
  CHECK(has_lab_limit({{.each = {.lab_gpus = 1}}}));
  CHECK(has_lab_limit({{.of_users = {{"ada", {.lab_gpus = 1}}}}}));
  CHECK(has_lab_limit({{.of_groups = {{"staff", {.lab_gpus = 1}}}}}));
  const SiteLimits by_day{
      {.each = {.lab_gpus = 4}},
      {{*week_hours_from_text("Mon-Fri 08:00-18:00"), {.of_users = {{"ada", {.lab_gpus = 2}}}}}}};
  CHECK(has_lab_limit({{}, by_day.hours}));
  const UserLimits now = limits_of(by_day, {7, "ada", {}}, kMondayMorning);
  CHECK_FALSE(over_lab_limit(now, 1, 1, 0));
  CHECK_FALSE(over_lab_limit(now, 2, 0, 0));
  CHECK(over_lab_limit(now, 1, 1, 1) ==
        "your limit in the lab is 2 GPUs at the same time (limits.users.ada for Mon-Fri 08:00-18:00 in the "
        "site file), and you have 1; your earlier requests wait for 1");
  CHECK(over_lab_limit(now, 1, 2, 0)->ends_with(", and you have 2"));
  CHECK_FALSE(never_in_lab(now, 4));
  CHECK(
      never_in_lab(now, 5)->starts_with("your limit in the lab is 4 GPUs at the same time (limits.lab_gpus"));
  CHECK_FALSE(over_lab_limit(limits_of(none, {7, "ada", {}}, kMondayMorning), 99, 99, 99));
  CHECK_FALSE(never_in_lab(limits_of(none, {7, "ada", {}}, kMondayMorning), 99));
}

TEST_CASE("each of the limits is found by itself") {
  const SiteLimits limits{{.each = {.gpus = 1, .waiting = 5, .time_s = 3600},
                           .of_users = {{"ada", {.gpus = 8}}},
                           .of_groups = {{"students", {.waiting = 2}}}}};
  const Limits found = limits_of_ada(limits, {"students"});
  CHECK(found.gpus == Limit{8, "limits.users.ada"});
  CHECK(found.waiting == Limit{2, "limits.groups.students"});
  CHECK(found.time_s == Limit{3600, "limits.time"});
}

TEST_CASE("in their hours limits hold in place of those with the same name, and of two the later one") {
  const WeekHours by_day = *week_hours_from_text("Mon-Fri 08:00-18:00");
  SiteLimits limits{{.each = {.gpus = 4}, .of_groups = {{"staff", {.gpus = 6}}}},
                    {{by_day, {.each = {.gpus = 2}, .of_groups = {{"students", {.gpus = 1}}}}}}};
  CHECK(limits_of_ada(limits).gpus == Limit{2, "limits.gpus for Mon-Fri 08:00-18:00"});
  CHECK(limits_of_ada(limits, {}, kMondayNight).gpus == Limit{4, "limits.gpus"});
  // The hours say nothing of the group that has the most.
  CHECK(limits_of_ada(limits, {"staff", "students"}).gpus == Limit{6, "limits.groups.staff"});
  limits.always.of_users["ada"] = {.gpus = 1};
  CHECK(limits_of_ada(limits).gpus == Limit{1, "limits.users.ada"});
  limits.hours.push_back({*week_hours_from_text("Mon"), {.of_users = {{"ada", {.gpus = 3}}}}});
  limits.hours.push_back({by_day, {.of_users = {{"ada", {.gpus = 5}}}}});
  CHECK(limits_of_ada(limits).gpus == Limit{5, "limits.users.ada for Mon-Fri 08:00-18:00"});
  CHECK(limits_of_ada(limits, {}, kMondayNight).gpus == Limit{3, "limits.users.ada for Mon"});
}

TEST_CASE("what some hour allows is not impossible in another") {
  const SiteLimits limits{{.each = {.gpus = 2, .time_s = 3600}},
                          {{*week_hours_from_text("22:00-06:00"), {.each = {.gpus = 8, .time_s = 36000}}}}};
  const UserLimits by_day = limits_of(limits, {7, "ada", {}}, kMondayMorning);
  Request request;
  request.count = 8;
  request.time_s = 36000;
  CHECK_FALSE(is_never_allowed(by_day, request));
  CHECK(over_limit(by_day, request, {}) ==
        "your limit is 2 GPUs at the same time (limits.gpus in the site file), and this asks for 8");
  CHECK_FALSE(over_limit(limits_of(limits, {7, "ada", {}}, kMondayNight), request, {}).has_value());
  request.count = 9;
  CHECK(is_never_allowed(by_day, request));
  CHECK(most_at_once(by_day, request) == 8);
  CHECK(over_limit(by_day, request, {}) ==
        "your limit is 8 GPUs at the same time (limits.gpus for 22:00-06:00 in the site file), and this "
        "asks for 9");
  request.count = 1;
  CHECK(over_limit(by_day, request, {}) ==
        "your limit for one lease is 1h (limits.time in the site file), and the request says 10h");
  request.time_s = 36001;
  CHECK(is_never_allowed(by_day, request));
  CHECK(most_at_once(by_day, request) == 0);
}

TEST_CASE("where one hour of the week has no limit nothing is impossible") {
  const SiteLimits limits{{}, {{*week_hours_from_text("Sun"), {.each = {.gpus = 0}}}}};
  Request request;
  CHECK_FALSE(is_never_allowed(limits_of(limits, {}, {6, 0}), request));
  CHECK(over_limit(limits_of(limits, {}, {6, 0}), request, {}).has_value());
  CHECK_FALSE(over_limit(limits_of(limits, {}, kMondayMorning), request, {}).has_value());
}

TEST_CASE("a lease lasts no longer than the site and the user's limit by now say") {
  UserLimits limits;
  CHECK_FALSE(longest_lease(std::nullopt, std::nullopt).has_value());
  CHECK_FALSE(longest_lease(std::nullopt, limits).has_value());
  CHECK(longest_lease(7200, limits) == Limit{7200, "time"});
  limits.now.time_s = Limit{3600, "limits.time"};
  CHECK(longest_lease(7200, limits) == Limit{3600, "limits.time"});
  CHECK(longest_lease(60, limits) == Limit{60, "time"});
  CHECK(longest_lease(std::nullopt, limits) == Limit{3600, "limits.time"});
}

Ledger with_leases_of(std::uint32_t uid) {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  ledger.tickets[0].uid = uid;
  ledger.tickets[1].uid = uid + 1;
  return ledger;
}

Ticket waiting_of(std::uint32_t uid) {
  Ticket waiting;
  waiting.uid = uid;
  waiting.devices = {uuid_of(2)};
  return waiting;
}

TEST_CASE("only what the user himself has leased counts") {
  CHECK(gpus_of(1000, with_leases_of(1000)) == 1);
  Ledger ledger = with_leases_of(1000);
  ledger.tickets.push_back(waiting_of(1000));
  CHECK(gpus_of(1000, ledger) == 1);
}

TEST_CASE("only what the user himself has in the queue counts, the request that comes among it") {
  UserLimits limits{.uid = 1000, .now = {.waiting = Limit{1, "limits.waiting"}}};
  Ledger ledger = with_leases_of(1000);
  ledger.tickets.push_back(waiting_of(1000));
  ledger.tickets.push_back(waiting_of(1001));
  CHECK_FALSE(over_waiting_limit(limits, ledger).has_value());
  ledger.tickets.push_back(waiting_of(1000));
  CHECK(over_waiting_limit(limits, ledger) ==
        "your limit is 1 request in the queue at the same time (limits.waiting in the site file), and you "
        "have 1");
  limits.now.waiting.reset();
  CHECK_FALSE(over_waiting_limit(limits, ledger).has_value());
}

UserLimits one_gpu() {
  const Limit limit{1, "limits.gpus"};
  return {1000, {.gpus = limit}, {.gpus = limit}};
}

TEST_CASE("who is at the limit is held back, with the figures, and nobody else is") {
  Facts facts = machine(3);
  facts.limits = one_gpu();
  Ledger ledger = with_leases_of(1000);
  Ticket mine;
  mine.id = TicketId{9};
  mine.uid = 1000;
  mine.candidates = {uuid_of(0), uuid_of(1), uuid_of(2)};
  ledger.tickets.push_back(mine);
  const auto planned = plan(ledger, facts, {}, TicketId{9});
  REQUIRE(std::holds_alternative<Blocked>(*planned));
  const auto& blocked = std::get<Blocked>(*planned);
  CHECK(blocked.held_back);
  CHECK(blocked.verdicts[0].failed == Clause::not_leased);
  CHECK(blocked.verdicts[2].failed == Clause::within_limit);
  CHECK(blocked.verdicts[2].reason ==
        "your limit is 1 GPU at the same time (limits.gpus in the site file), and you have 1");
  Request two;
  two.count = 2;  // more than are free
  CHECK(std::get<Blocked>(*plan(ledger, facts, two, TicketId{9})).held_back);
  facts.limits->now.gpus->most = 2;
  CHECK(std::holds_alternative<Granted>(*plan(ledger, facts, {}, TicketId{9})));
  CHECK((*judge_each({}, ledger, facts))[2].free());
}

TEST_CASE("more than the limit is never possible") {
  Facts facts = machine(3);
  facts.limits = one_gpu();
  Request two;
  two.count = 2;
  const auto possible = check_possible(two, facts);
  REQUIRE(!possible);
  CHECK(possible.error().code == ErrorCode::impossible);
  CHECK(check_possible({}, facts).has_value());
}

struct LeaveFree {
  Facts facts = machine(4);
  Ledger ledger;
  Request request;

  LeaveFree() {
    facts.policy.leave_free = 2;
    request.yield_s = 10;
    Ticket mine = wants(9, 1, {0, 1, 2, 3});
    mine.uid = 1000;
    mine.yield_s = 10;
    ledger.tickets.push_back(mine);
  }
  Plan planned() const { return plan(ledger, facts, request, TicketId{9}).value(); }
};

TEST_CASE("a request that yields starts only if as many GPUs stay free as the site says") {
  LeaveFree yields;
  CHECK(std::holds_alternative<Granted>(yields.planned()));
  yields.request.count = 2;
  CHECK(std::holds_alternative<Granted>(yields.planned()));
  yields.request.count = 1;
  yields.ledger.tickets.push_back(lease(1, uuid_of(0)));
  CHECK(std::holds_alternative<Granted>(yields.planned()));
  yields.ledger.tickets.push_back(lease(2, uuid_of(1)));
  const Plan plan = yields.planned();
  REQUIRE(std::holds_alternative<Blocked>(plan));
  const auto& blocked = std::get<Blocked>(plan);
  // Others skip it.
  CHECK(blocked.held_back);
  CHECK(blocked.verdicts[0].failed == Clause::not_leased);
  CHECK(blocked.verdicts[2].failed == Clause::within_limit);
  CHECK(blocked.verdicts[2].reason ==
        "a request that yields starts only if 2 GPUs stay free beside it (leave_free in the site file): 2 "
        "GPUs are free now");
  // What is used without a lease, or out of order, does not stay free.
  yields.ledger.tickets.pop_back();
  yields.facts.snapshot.devices[3].state = DeviceState::lost;
  CHECK(std::holds_alternative<Blocked>(yields.planned()));
  yields.request.yield_s.reset();
  CHECK(std::holds_alternative<Granted>(yields.planned()));
}

TEST_CASE("a share that yields goes where others are, and takes no GPU that is to stay free") {
  LeaveFree yields;
  yields.request = shared_request(kGiB);
  yields.request.yield_s = 10;
  for (const unsigned gpu : {0U, 1U}) yields.ledger.tickets.push_back(lease(gpu + 1, uuid_of(gpu)));
  CHECK(std::holds_alternative<Blocked>(yields.planned()));
  yields.ledger.tickets.back() = shared_lease(2, uuid_of(1), kGiB);
  const Plan plan = yields.planned();
  REQUIRE(std::holds_alternative<Granted>(plan));
  CHECK(std::get<Granted>(plan).choice.uuids == std::vector{uuid_of(1)});
}

TEST_CASE("as many GPUs as would never leave enough are never possible for a request that yields") {
  LeaveFree yields;
  yields.request.count = 3;
  const auto possible = check_possible(yields.request, yields.facts);
  REQUIRE(!possible);
  CHECK(possible.error().code == ErrorCode::impossible);
  CHECK(
      possible.error().message ==
      "a request that yields leaves 2 GPUs free (leave_free in the site file), and this machine has 4 GPUs: "
      "ask without --yield");
  yields.request.yield_s.reset();
  CHECK(check_possible(yields.request, yields.facts).has_value());
  // What is inside of a lease is nobody else's.
  yields.request.yield_s = 10;
  yields.facts.within = std::vector{uuid_of(0), uuid_of(1), uuid_of(2)};
  CHECK(check_possible(yields.request, yields.facts).has_value());
}

}  // namespace
}  // namespace berth::limits_test
