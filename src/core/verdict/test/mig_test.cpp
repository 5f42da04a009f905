#include <doctest/doctest.h>

#include "berth/verdict/test/judged.h"
#include "berth/verdict/verdict.h"

namespace berth::mig_test {
namespace {

using namespace test;

/// GPU 0 is split into two instances, GPU 1 is whole.
Facts split_machine() {
  Facts facts = machine(2);
  split(facts.snapshot, 0, 2);
  return facts;
}

TEST_CASE("the instances of a split GPU are judged in its place") {
  const Facts facts = split_machine();
  const auto verdicts = judge({}, {}, facts).value();
  REQUIRE(verdicts.size() == 3);
  CHECK(verdicts[0].uuid == facts.snapshot.devices[1].uuid);
  CHECK(verdicts[0].free());
  CHECK(verdicts[0].free_bytes == 10 * kGiB);
  CHECK(verdicts[2].uuid == uuid_of(1));
}

TEST_CASE("an instance is leased when its GPU is, and alone otherwise") {
  const Facts facts = split_machine();
  const std::string slice = facts.snapshot.devices[1].uuid;
  const auto free = [&](const Ticket& ticket, const Request& request) {
    Ledger ledger;
    ledger.tickets = {ticket};
    const std::vector<Verdict> verdicts = judge(request, ledger, facts).value();
    std::vector<bool> result;
    for (const Verdict& verdict : verdicts) result.push_back(verdict.free());
    return result;
  };
  CHECK(free(lease(1, slice), {}) == std::vector{false, true, true});
  CHECK(free(lease(1, uuid_of(0)), {}) == std::vector{false, false, true});
  CHECK(free(shared_lease(1, uuid_of(0), kGiB), shared_request(kGiB)) == std::vector{false, false, true});
  CHECK(free(shared_lease(1, slice, kGiB), shared_request(kGiB)) == std::vector{true, true, true});
}

TEST_CASE("the utilisation of an instance is never known, which is never idle") {
  Request request;
  request.conditions = {condition("util<=100")};
  const Verdict verdict = judged(request, {}, split_machine());
  CHECK(verdict.failed == Clause::static_filters);
  CHECK(verdict.reason == "util <= 100 asked, it is not available");
}

TEST_CASE("several instances are never mixed into one choice unless they are named") {
  Request request;
  request.count = 2;
  CHECK(judged(request, {}, split_machine()).reason ==
        "a MIG instance: CUDA sees only one of them at a time, 2 devices asked for");
  request.devices = {"0:0", "0:1"};
  CHECK(judged(request, {}, split_machine()).free());
}

}  // namespace
}  // namespace berth::mig_test
