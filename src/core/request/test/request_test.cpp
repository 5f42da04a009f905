#include "berth/request/request.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::request_test {
namespace {

using namespace test;

TEST_CASE("each order has a text that means it") {
  CHECK(words_of(Order()).size() == 10);
  for (const std::string_view name : words_of(Order())) {
    const std::optional<Order> order = from_word<Order>(name);
    REQUIRE(order);
    CHECK(to_text(*order) == name);
  }
  CHECK(to_text(Order::automatic) == "auto");
  CHECK(to_text(Order::topology) == "topology");
  CHECK(!from_word<Order>("fastest"));
}

TEST_CASE("a request asks for the readings that judging it needs, and never for samples unasked") {
  const ReadingSet plain = Request{}.readings();
  for (const ReadingKind kind : {ReadingKind::utilization, ReadingKind::power, ReadingKind::temperature,
                                 ReadingKind::clocks, ReadingKind::fan, ReadingKind::topology}) {
    CHECK(!plain.has(kind));
  }
  for (const ReadingKind kind : {ReadingKind::memory, ReadingKind::processes, ReadingKind::mig})
    CHECK(plain.has(kind));
  Request request;
  request.conditions = {condition("util<5"), condition("temp<80")};
  CHECK(request.readings() == (plain | ReadingKind::utilization | ReadingKind::temperature));
  request = {};
  request.order = Order::least_power;
  CHECK(request.readings() == (plain | ReadingKind::power));
  request = {};
  request.devices = {"0000:01:00.0"};
  CHECK(request.readings() == (plain | ReadingKind::pci));
}

TEST_CASE("a request that contradicts itself is refused whatever the machine") {
  struct Row {
    std::string message;
    void (*arrange)(Request&);
  };
  for (const Row& row : {
           Row{"a request for 0 devices: ask for at least 1", [](Request& r) { r.count = 0; }},
           Row{"57 GPUs are asked for, and a lease holds 56 at most; `berth list` shows how many this "
               "machine has",
               [](Request& r) { r.count = kMostDevices + 1; }},
           Row{"memory can be promised only on a shared device, not on a whole one",
               [](Request& r) { r.promise_bytes = kGiB; }},
           Row{"a time must be at least 1s and at most 365d; leave it out for no limit",
               [](Request& r) { r.time_s = 0; }},
           Row{"a time must be at least 1s and at most 365d; leave it out for no limit",
               [](Request& r) { r.time_s = kLongestTimeS + 1; }},
           Row{"device 3 is both asked for and excluded",
               [](Request& r) {
                 r.devices = {"2", "3"};
                 r.exclude = {"3"};
               }},
           Row{"the request contradicts itself: no device can have free >= 20G and free < 10G",
               [](Request& r) { r.conditions = {condition("free>=20G"), condition("util<5 and free<10G")}; }},
           Row{"the request contradicts itself: no device can have temp > 80 and temp <= 80",
               [](Request& r) { r.conditions = {condition("temp<=80 and temp>80")}; }},
       }) {
    Request request;
    row.arrange(request);
    const Result<void> checked = check(request);
    REQUIRE(!checked);
    CHECK(checked.error().code == ErrorCode::usage);
    CHECK(checked.error().message == row.message);
  }
}

TEST_CASE("a request that can be met is not refused") {
  Request request = shared_request(kGiB);
  request.conditions = {condition("free>=10G and free<=10G and (temp<80 or temp>90) and used<50%"),
                        condition("used>1G")};
  request.devices = {"1"};
  request.exclude = {"2"};
  request.time_s = kLongestTimeS;
  request.count = kMostDevices;
  CHECK(check(request));
}

}  // namespace
}  // namespace berth::request_test
