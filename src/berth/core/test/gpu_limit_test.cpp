#include "berth/core/gpu_limit.h"

#include <doctest/doctest.h>

#include "berth/core/plan.h"
#include "machine.h"

namespace berth {
namespace {

using namespace test;

TEST_CASE("a user's own limit comes before that of a group, and that before that of all") {
  const GpuLimits limits{.each = 1, .of_users = {{"ada", 8}}, .of_groups = {{"students", 2}, {"staff", 4}}};
  CHECK(limit_of(limits, 7, "ada", {"students"}) == GpuLimit{7, 8, "limits.users.ada"});
  CHECK(limit_of(limits, 7, "bob", {"students", "staff"}) == GpuLimit{7, 4, "limits.groups.staff"});
  CHECK(limit_of(limits, 7, "bob", {"guests"}) == GpuLimit{7, 1, "limits.gpus"});
  CHECK_FALSE(limit_of({.of_users = {{"ada", 8}}}, 7, "bob", {}).has_value());
}

Ledger with_leases_of(std::uint32_t uid) {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  ledger.tickets[0].uid = uid;
  ledger.tickets[1].uid = uid + 1;
  return ledger;
}

TEST_CASE("only what the user himself has leased counts") {
  CHECK(gpus_of(1000, with_leases_of(1000)) == 1);
  Ticket waiting;
  waiting.uid = 1000;
  waiting.devices = {uuid_of(2)};
  Ledger ledger = with_leases_of(1000);
  ledger.tickets.push_back(waiting);
  CHECK(gpus_of(1000, ledger) == 1);
}

TEST_CASE("who is at the limit is held back, with the figures, and nobody else is") {
  Facts facts = machine(3);
  facts.limit = GpuLimit{1000, 1, "limits.gpus"};
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
  facts.limit->gpus = 2;
  CHECK(std::holds_alternative<Granted>(*plan(ledger, facts, {}, TicketId{9})));
  CHECK((*judge_each({}, ledger, facts))[2].free());
}

TEST_CASE("more than the limit is never possible") {
  Facts facts = machine(3);
  facts.limit = GpuLimit{1000, 1, "limits.gpus"};
  Request two;
  two.count = 2;
  const auto possible = check_possible(two, facts);
  REQUIRE(!possible);
  CHECK(possible.error().code == ErrorCode::impossible);
  CHECK(check_possible({}, facts).has_value());
}

}  // namespace
}  // namespace berth
