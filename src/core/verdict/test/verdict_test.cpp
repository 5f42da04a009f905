#include "berth/verdict/verdict.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "berth/verdict/test/judged.h"

namespace berth::verdict_test {
namespace {

using namespace test;

TEST_CASE("an idle device is free for a whole request, and tells what a lease could use") {
  const Verdict verdict = judged({}, {}, machine(1));
  CHECK(verdict.free());
  CHECK(verdict.uuid == kGpu0);
  CHECK(verdict.reason == "");
  CHECK(verdict.free_bytes == 40 * kGiB - 512 * kMiB);
}

TEST_CASE("the process that asks is no outsider to its own request, and its memory is not in its way") {
  Facts facts = machine(1);
  Device& device = facts.snapshot.devices[0];
  Process process;
  process.pid = 42;
  process.kind = ProcessKind::compute;
  process.used_bytes = 30 * kGiB;
  device.processes = {process};
  device.memory.used_bytes = 30 * kGiB;
  CHECK(judged({}, {}, facts).failed == Clause::no_outsider);
  facts.own_processes = {42};
  const Verdict own = judged({}, {}, facts);
  CHECK(own.free());
  CHECK(own.free_bytes == 40 * kGiB - 512 * kMiB);
  device.compute_mode = ComputeMode::exclusive_process;
  CHECK(judged({}, {}, facts).free());
}

TEST_CASE("what is passed over says why, and is tried where too few others would ever remain") {
  Facts facts = machine(3);
  PassedOver passed{
      .since = 1000, .until = 601'000, .longest = 1500, .lives_on = uuid_of(2), .until_text = "14:20"};
  facts.passed_over[uuid_of(0)] = passed;
  const auto free_of = [&](const Request& request) {
    std::string text;
    const auto verdicts = judge(request, {}, facts);
    REQUIRE(verdicts);
    for (const Verdict& verdict : *verdicts) text += verdict.free() ? '1' : '0';
    return text;
  };
  Request request;
  CHECK(free_of(request) == "011");
  CHECK(
      judged(request, {}, facts).reason ==
      "passed over until 14:20: the last 3 runs on it ended badly within 2 s, and the same program lives on "
      "GPU 2");
  facts.passed_over[uuid_of(0)].no_cuda = true;
  CHECK(judged(request, {}, facts).reason ==
        "passed over until 14:20: CUDA did not start on it; `berth doctor` says why");
  request.count = 2;
  CHECK(free_of(request) == "011");
  request.count = 3;
  CHECK(free_of(request) == "111");
  request.count = 1;
  request.devices = {"0"};
  CHECK(free_of(request) == "100");
  request.devices.clear();
  // The one that has waited for the longest is tried first.
  passed.since = 500;
  facts.passed_over[uuid_of(1)] = passed;
  passed.since = 2000;
  facts.passed_over[uuid_of(2)] = passed;
  CHECK(free_of(request) == "010");
  request.count = 2;
  CHECK(free_of(request) == "110");
  // A lease of somebody else on it is no reason to try another.
  request.count = 1;
  Ledger leased_once;
  leased_once.tickets = {lease(1, uuid_of(1))};
  const auto leased = judge(request, leased_once, facts);
  REQUIRE(leased);
  CHECK_FALSE((*leased)[0].free());
  // A listing is about each device by itself.
  const auto each = judge_each({}, {}, facts);
  REQUIRE(each);
  CHECK((*each)[1].failed == Clause::not_passed_over);
  passed.by_others = true;
  passed.lives_on = "GPU-gone";
  facts.passed_over = {{uuid_of(0), passed}};
  CHECK(judged(request, {}, facts).reason ==
        "passed over until 14:20: the last 3 runs on it of each of two users ended badly within 2 s, and the "
        "same "
        "program lives on another GPU");
}

TEST_CASE("what the asking program does not admit is no candidate") {
  const Facts facts = machine(3);
  Request request;
  request.admitted = {uuid_of(2)};
  CHECK(judged(request, {}, facts).reason == "not admitted by the condition of the program that asks");
  CHECK(candidates(request, facts) == std::vector{uuid_of(2)});
  request.count = 2;
  CHECK(check_possible(request, facts).error().code == ErrorCode::impossible);
  request.admitted.emplace();
  CHECK(candidates(request, facts)->empty());
}

TEST_CASE("who stands in the way is named") {
  Facts facts = machine(2);
  Process outsider = process(99, kGiB);
  outsider.started_at_s = 1'700'000'000;
  outsider.container = "cafe";
  add_process(facts.snapshot.devices[0], outsider);
  Ledger ledger;
  ledger.tickets = {lease(7, uuid_of(1))};
  ledger.tickets[0].command = "python x.py";
  ledger.tickets[0].note = "until noon";
  ledger.tickets[0].since_s = 1'700'000'001;
  const std::vector<Verdict> verdicts = judge({}, ledger, facts).value();
  CHECK(verdicts[0].culprits ==
        std::vector{Culprit{"bob", 99, "/usr/bin/python train.py", 1'700'000'000, {}, "in container cafe"}});
  CHECK(verdicts[1].culprits ==
        std::vector{Culprit{"alice", 4000, "python x.py", 1'700'000'001, TicketId{7}, "until noon"}});
}

TEST_CASE("a request that does not fit the machine is refused with what there is") {
  struct Refused {
    ErrorCode code;
    std::string message;
    void (*arrange)(Request&, Facts&);
  };
  for (const Refused& row : {
           Refused{ErrorCode::usage, "devices asked for: there is no device \"9\": this machine has 0-2",
                   [](Request& r, Facts&) { r.devices = {"9"}; }},
           Refused{
               ErrorCode::usage,
               "devices to exclude: \"GPU-0000\" is the beginning of 3 UUIDs (devices 0-2): write more of it",
               [](Request& r, Facts&) { r.exclude = {"GPU-0000"}; }},
           Refused{ErrorCode::usage, "device 1 is both asked for and excluded",
                   [](Request& r, Facts&) {
                     r.devices = {"1"};
                     r.exclude = {uuid_of(1)};
                   }},
           Refused{ErrorCode::usage, "3 devices are asked for, but only 2 of the machine's are named: 0, 1",
                   [](Request& r, Facts&) {
                     r.devices = {"0", "1"};
                     r.count = 3;
                   }},
           Refused{ErrorCode::usage, "a request for 0 devices: ask for at least 1",
                   [](Request& r, Facts&) { r.count = 0; }},
           Refused{ErrorCode::impossible, "4 devices are asked for, and this machine has 3",
                   [](Request& r, Facts&) { r.count = 4; }},
           Refused{ErrorCode::impossible,
                   "a device is asked for, and none of this machine's can ever satisfy the request: GPU 0, "
                   "2: name ~ H100 "
                   "asked, it is NVIDIA A100-SXM4-40GB; GPU 1: name ~ H100 asked, it is NVIDIA T4",
                   [](Request& r, Facts& f) {
                     f.snapshot.devices[1].name = "NVIDIA T4";
                     r.conditions = {condition("name~H100")};
                   }},
           Refused{ErrorCode::impossible,
                   "2 devices are asked for, and only 1 of 3 can ever satisfy the request: GPU 0: excluded "
                   "by the site: "
                   "fan; GPU 1: not in CUDA_VISIBLE_DEVICES=0,2",
                   [](Request& r, Facts& f) {
                     r.count = 2;
                     f.policy.excluded = {{"0", "fan"}};
                     f.masks = {Mask{"0,2", {uuid_of(0), uuid_of(2)}, {}}};
                   }},
           Refused{ErrorCode::impossible, "this machine has no GPU that can be used",
                   [](Request&, Facts& f) { f.snapshot.devices.clear(); }},
       }) {
    Request request;
    Facts facts = machine(3);
    row.arrange(request, facts);
    const Result<void> possible = check_possible(request, facts);
    REQUIRE_MESSAGE(!possible, row.message);
    CHECK(possible.error().code == row.code);
    CHECK(possible.error().message == row.message);
    if (row.code == ErrorCode::usage) CHECK(judge(request, {}, facts).error() == possible.error());
  }
}

TEST_CASE("candidates are what a request could ever use, whoever holds it now") {
  Facts facts = machine(4);
  facts.snapshot.devices[1].state = DeviceState::lost;
  add_process(facts.snapshot.devices[2], process(9, kGiB));
  Request request;
  request.exclude = {"3"};
  request.conditions = {condition("util<=5 and free>=39G")};
  facts.snapshot.devices[0].utilization_percent = 90;
  CHECK(candidates(request, facts).value() == std::vector{uuid_of(0), uuid_of(2)});
  CHECK(check_possible(request, facts));
}

Facts machine_of_two_vendors() {
  Facts facts = machine(4);
  facts.snapshot.devices[2].vendor = facts.snapshot.devices[3].vendor = "amd";
  return facts;
}

TEST_CASE("a request gets devices of the first vendor that could ever serve it, whoever holds them now") {
  const Facts facts = machine_of_two_vendors();
  Request request;
  request.count = 2;
  Ledger books;
  books.tickets = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  const auto verdicts = judge(request, books, facts).value();
  CHECK(verdicts[0].failed == Clause::not_leased);
  CHECK(verdicts[2].failed == Clause::static_filters);
  CHECK(verdicts[2].reason ==
        "made by AMD: a request gets GPUs of one maker, here NVIDIA; to get these instead, add --where "
        "vendor=amd");
  CHECK(candidates(request, facts).value() == std::vector<std::string>{uuid_of(0), uuid_of(1)});
  request.conditions = {condition("vendor=amd")};
  CHECK(candidates(request, facts).value() == std::vector<std::string>{uuid_of(2), uuid_of(3)});
}

TEST_CASE("a vendor with too few devices makes room for one with enough") {
  Facts facts = machine_of_two_vendors();
  facts.snapshot.devices[0].state = DeviceState::lost;
  Request request;
  request.count = 2;
  CHECK(candidates(request, facts).value() == std::vector<std::string>{uuid_of(2), uuid_of(3)});
}

TEST_CASE("a listing asks of each device by itself") {
  const auto verdicts = judge_each(Request(), {}, machine_of_two_vendors()).value();
  CHECK(std::ranges::all_of(verdicts, &Verdict::free));
}

TEST_CASE("a request that names devices of two vendors is refused") {
  Request request;
  request.devices = {"1", "2"};
  const auto verdicts = judge(request, {}, machine_of_two_vendors());
  REQUIRE(!verdicts);
  CHECK(verdicts.error().code == ErrorCode::usage);
  CHECK(
      verdicts.error().message ==
      "device 1 is made by NVIDIA and device 2 by AMD: a job gets devices of one maker, so ask for those of "
      "one");
}

}  // namespace
}  // namespace berth::verdict_test
