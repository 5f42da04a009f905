#include "berth/hosts/model/caller_step.h"

#include <doctest/doctest.h>

#include "berth/hosts/test/caller_desk.h"

namespace berth::caller_test::caller_step_test {

// --- without a lab queue

TEST_CASE("a request gets in the queue of each host, and starts on the one that grants it") {
  Desk desk(2);
  CHECK(desk.did == Words{"connects gpu0", "connects gpu1"});
  CHECK(desk.greets(0) == Words{"asks for GPUs on gpu0"});
  CHECK(desk.greets(1) == Words{"asks for GPUs on gpu1"});
  CHECK(desk.is(WaitsInQueue{0}).empty());
  CHECK(desk.is(WaitsInQueue{1}).empty());
  CHECK(desk.is(Grants{1}) == Words{"says yes to gpu1", "leaves gpu0"});
  CHECK(desk.is(Begins{1}) == Words{"passes the streams of gpu1"});
}

TEST_CASE("of those that grant it at once it takes the tightest, and waits a moment for their answers") {
  Desk desk(3);
  desk.now += 100ms;
  desk.all_greet();
  desk.is(Offered{0, {.free = 8}});
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.sleeps_until == desk.now + 20ms);
  desk.is(Offered{2, {.free = 1}});
  CHECK(desk.is(Grants{2}).empty());
  // The third does not grant it at once: nobody is left to wait for.
  CHECK(desk.is(WaitsInQueue{1}) == Words{"says yes to gpu2", "leaves gpu0", "leaves gpu1"});
}

TEST_CASE("a slow host is waited for a fifth of the time that the first grant took, and 50 ms at most") {
  Desk desk(2);
  desk.now += 10s;
  desk.all_greet();
  desk.is(Grants{0});
  CHECK(desk.passes(49ms).empty());
  CHECK(desk.passes(1ms) == Words{"says yes to gpu0", "leaves gpu1"});
}

TEST_CASE("of many hosts it asks for offers, joins where it starts at once, and after 3 s all others") {
  Desk desk(6);
  CHECK(desk.did.size() == 6);
  CHECK(desk.greets(0) == Words{"asks what it can have on gpu0"});
  desk.all_greet();
  CHECK(desk.is(Offered{0, {.possible = 1}}).empty());
  CHECK(desk.is(Offered{1, kAtOnce}) == Words{"joins gpu1"});
  CHECK(desk.is(WaitsInQueue{1}).empty());
  CHECK(desk.passes(2999ms).empty());
  CHECK(desk.passes(1ms) == Words{"joins gpu0"});
  CHECK(desk.is(Offered{2, kAtOnce}) == Words{"joins gpu2"});
}

TEST_CASE(
    "a host that is not up costs the others nothing, and is told once a wait is no matter of a moment") {
  Desk desk(2);
  CHECK(desk.is(HostLost{0, {ErrorCode::failure, "it runs no ssh server on this port"}}) ==
        Words{"leaves gpu0", "says: without gpu0: it runs no ssh server on this port"});
  desk.greets(1);
  CHECK(desk.is(Grants{1}) == Words{"says yes to gpu1"});
}

TEST_CASE("a host that says nothing is left after 20 s") {
  Desk desk(2);
  desk.greets(1);
  desk.is(WaitsInQueue{1});
  desk.passes(3s);
  CHECK(desk.sleeps_until == kBegin + kPatienceForHello);
  CHECK(desk.passes(17s) ==
        Words{"leaves gpu0", "says: without gpu0: ssh has had no answer for 20 s. Try: ssh gpu0 true"});
  CHECK_FALSE(desk.sleeps_until);
}

TEST_CASE("a host with the version before or after is left with what to do, and asked nothing") {
  for (const char* other : {"0.0.1", "99.0.0", ""}) {
    Desk desk(2);
    const Words did = desk.is(Hello{0, other});
    REQUIRE(did.size() == 2);
    CHECK(did[0] == "leaves gpu0");
    CHECK(did[1].find("Install the same version on both") != std::string::npos);
    desk.greets(1);
    CHECK(desk.is(Grants{1}) == Words{"says yes to gpu1"});
  }
}

TEST_CASE("if no host is left, it fails with what each one has said") {
  Desk desk(2);
  desk.is(HostLost{0, {ErrorCode::not_now, "0 of 1 free"}});
  CHECK(desk.is(HostLost{1, {ErrorCode::failure, "it is down"}}).back() ==
        "fails: the command starts on none of the hosts:\n  gpu0: 0 of 1 free\n  gpu1: it is down");
  CHECK(desk.code == ErrorCode::not_now);
}

TEST_CASE("a host that is lost with the yes fails the request, since the command may have begun there") {
  Desk desk(2);
  desk.all_greet();
  desk.is(WaitsInQueue{1});
  CHECK(desk.is(Grants{0}).front() == "says yes to gpu0");
  CHECK(desk.is(HostLost{0, kHungUp}).back().find("was started on no other host") != std::string::npos);
  CHECK(desk.has_ended);
}

TEST_CASE("a host that is lost while its command runs fails the request, as the command ends") {
  Desk desk(1);
  desk.greets(0);
  desk.is(Grants{0});
  desk.is(Begins{0});
  CHECK(desk.is(HostLost{0, kHungUp}).back().find("was lost while the command ran there") !=
        std::string::npos);
}

TEST_CASE("a start that cannot be written is told to no host") {
  Desk desk(2);
  desk.disk_is_full = true;
  desk.all_greet();
  desk.is(WaitsInQueue{1});
  CHECK(desk.is(Grants{0}) == Words{"leaves gpu1", "fails: the disk is full"});
}

TEST_CASE("a request that is cancelled on one host ends on all") {
  Desk desk(2);
  desk.all_greet();
  desk.is(WaitsInQueue{0});
  CHECK(desk.is(Cancelled{0}) == Words{"ends as cancelled on gpu0"});
}

// --- hosts that lie

TEST_CASE("a host that grants what it was not asked for gets no yes, and keeps the request from no other") {
  Desk desk(6);
  desk.all_greet();
  // It was asked what it offers. With no offer it would be the tightest.
  CHECK(desk.is(WaitsInQueue{0}).empty());
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.is(Begins{0}).empty());
  CHECK(desk.is(Cancelled{0}).empty());
  desk.is(Offered{1, kAtOnce});
  desk.passes(1s);
  CHECK(desk.is(Grants{1}).front() == "says yes to gpu1");
}

TEST_CASE("what a host says before it greets, again, or after it was left, moves nothing") {
  Desk desk(2);
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.is(Offered{0, kAtOnce}).empty());
  desk.greets(0);
  CHECK(desk.greets(0).empty());
  desk.is(WaitsInQueue{0});
  CHECK(desk.is(WaitsInQueue{0}).empty());
  desk.is(HostLost{1, kHungUp});
  CHECK(desk.greets(1).empty());
  CHECK(desk.is(Grants{1}).empty());
  CHECK(desk.is(HostLost{1, kHungUp}).empty());
  CHECK(desk.is(Grants{0}) == Words{"says yes to gpu0"});
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.is(Begins{1}).empty());
  CHECK(desk.is(Begins{0}) == Words{"passes the streams of gpu0"});
  CHECK(desk.is(Begins{0}).empty());
}

}  // namespace berth::caller_test::caller_step_test
