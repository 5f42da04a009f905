#include "berth/view/usage.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>

#include "property.h"

namespace berth::view::past_leases_test {
namespace {

std::string fault_of_record(const std::string& lease) {
  const auto read = recorded_leases_from_json(
      R"({"kind":"berth-past-leases","version":1,"devices":["a","b"],"leases":[{"id":"00000000000000aa","on":[1])" +
      lease + "}]}");
  return read ? "none" : read.error().message;
}

TEST_CASE("leases are read as they were written") {
  holds_for_any([] {
    RecordedLeases written{
        *rc::gen::inRange<std::int64_t>(0, 1'000'000'000), 1'800'000'000, false, {"a", "b", "c"}, {}};
    const auto count = *rc::gen::inRange(0, 5);
    for (int at = 0; at < count; ++at) {
      RecordedLease lease{{*rc::gen::arbitrary<std::uint64_t>()},
                          *rc::gen::element<std::string>("ann", "b\"o\nb", ""),
                          *rc::gen::inRange<std::int64_t>(0, 1'000'000'000)};
      if (*rc::gen::arbitrary<bool>()) lease.ended_s = lease.begun_s + 5;
      for (std::size_t device = 0; device < 3; ++device)
        if (*rc::gen::arbitrary<bool>()) lease.devices.push_back(device);
      if (*rc::gen::arbitrary<bool>()) {
        lease.wish = RecordedWish{.joined_s = lease.begun_s - 1,
                                  .whole = *rc::gen::arbitrary<bool>(),
                                  .yields = *rc::gen::arbitrary<bool>()};
        if (*rc::gen::arbitrary<bool>()) lease.wish->time_s = *rc::gen::inRange<std::int64_t>(1, 1'000'000);
        if (*rc::gen::arbitrary<bool>()) lease.wish->command = *rc::gen::arbitrary<std::uint64_t>();
      }
      for (const std::size_t device : lease.devices) {
        if (*rc::gen::arbitrary<bool>())
          lease.figures[device] = {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<bool>()};
        else if (*rc::gen::arbitrary<bool>())
          lease.figures[device] = {};
      }
      written.leases.push_back(lease);
    }
    const auto read = recorded_leases_from_json(recorded_leases_json(written, Layout::line));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == written);
  });
}

TEST_CASE("loads and memory are read as they were written, and loads alone") {
  RecordedLeases written{.from_s = 10, .to_s = 20, .devices = {"a"}, .leases = {}, .step_s = 5};
  written.loads = {{7, std::nullopt}};
  written.memories = {{81'000, std::nullopt}};
  const std::string text = recorded_leases_json(written, Layout::line);
  CHECK(recorded_leases_from_json(text) == written);
  std::string before = text;
  const std::string memories = R"(,"memories":[[81000,null]])";
  REQUIRE(before.contains(memories));
  before.erase(before.find(memories), memories.size());
  written.memories.clear();
  CHECK(recorded_leases_from_json(before) == written);
}

TEST_CASE("what a lease used may be left out") {
  RecordedLeases written{.from_s = 10, .to_s = 20, .devices = {"a"}, .leases = {}};
  written.leases.push_back({{1}, "ann", 11, 15, {0}, RecordedWish{.joined_s = 10}, {{0, {4711, true}}}});
  std::string before = recorded_leases_json(written, Layout::line);
  const std::string used = R"(,"used":[{"on":0,"energy_mj":4711,"clean":true}])";
  REQUIRE(before.contains(used));
  before.erase(before.find(used), used.size());
  written.leases[0].figures.clear();
  CHECK(recorded_leases_from_json(before) == written);
  CHECK(fault_of_record(R"(,"used":[{"on":0,"clean":"no"},{"on":7},{}])") == "none");
}

TEST_CASE("what is no document about leases is refused, and what is no value named") {
  CHECK(recorded_leases_from_json("[").error().message.find("not a document") != std::string::npos);
  CHECK(recorded_leases_from_json(R"({"kind":"berth-past-leases","version":2})")
            .error()
            .message.find("another version") != std::string::npos);
  CHECK(fault_of_record("") == "none");
  CHECK(fault_of_record(R"(,"id":"x")").find("is no id of a ticket") != std::string::npos);
  CHECK(fault_of_record(R"(,"on":[2])").find("must be places in the list of devices") != std::string::npos);
  CHECK(fault_of_record(R"(,"on":[1,1])").find("must be places in the list of devices") != std::string::npos);
  CHECK(fault_of_record(R"(,"request":{"time_s":0})").find("must be at least 1") != std::string::npos);
}

}  // namespace
}  // namespace berth::view::past_leases_test
